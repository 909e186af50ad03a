#include "step/fuse.h"

namespace tide {
namespace {

// What becomes of a layer.
struct Fate {
  LayerId into;                    // the layer that takes it in; itself where nothing does
  BatchNormOptions function = {};  // its fused fields
  LayerId addition;                // whose other input it takes in
};

class Fuser {
 public:
  Fuser(const Network& network, std::int64_t batch, DataType type, Bytes limit)
      : network_(network), batch_(batch), type_(type), limit_(limit), fates_(network.layers.size()) {
    consumers_.resize(network.layers.size());
    uses_.resize(network.layers.size(), 0);
    for (std::size_t l = 0; l < network.layers.size(); ++l) {
      fates_[l].into = LayerId(l);
      for (const Value& input : network.layers[l].inputs) {
        consumers_[input.layer.index()] = LayerId(l);
        ++uses_[input.layer.index()];
      }
    }
  }

  Network fuse() {
    for (std::size_t l = 0; l < network_.layers.size(); ++l)
      if (network_.layers[l].kind == LayerKind::batch_norm) decide(LayerId(l));
    return rewrite();
  }

 private:
  [[nodiscard]] const Layer& layer(LayerId id) const { return network_.layer(id); }
  // The one consumer of a layer's output; invalid where there are more, or none.
  [[nodiscard]] LayerId only_consumer(LayerId id) const {
    return uses_[id.index()] == 1 ? consumers_[id.index()] : LayerId();
  }
  [[nodiscard]] bool is(LayerId id, LayerKind kind) const { return id.valid() && layer(id).kind == kind; }

  void decide(LayerId norm) {
    Fate& fate = fates_[norm.index()];
    LayerId last = norm;
    const LayerId add = only_consumer(norm);
    // The addition goes to the later of two batch norms: its other input is there by then.
    const bool joins = is(add, LayerKind::add) && layer(add).inputs.size() == 2 &&
                       layer(add).inputs[0].layer != layer(add).inputs[1].layer &&
                       layer(add).outputs == layer(norm).outputs && other_input(add, norm).layer < norm && fits(norm);
    if (joins) {
      fate.addition = add;
      fates_[add.index()].into = norm;
      last = add;
    }
    const LayerId next = only_consumer(last);
    if (!next.valid() || !take_function(layer(next), joins, fate.function)) return;
    fates_[next.index()].into = norm;
  }

  // With an addition the slope is made from y, which not every function allows.
  static bool take_function(const Layer& layer, bool joins, BatchNormOptions& norm) {
    if (layer.kind == LayerKind::relu) {
      norm.fused = FusedFunction::relu;
      return true;
    }
    const auto* const options = std::get_if<ActivationOptions>(&layer.options);
    if (options == nullptr) return false;
    if (options->function == ActivationFunction::clip) {
      norm.fused = FusedFunction::clip;
      norm.fused_minimum = options->alpha, norm.fused_maximum = options->beta;
      return true;
    }
    if (joins) return false;
    if (options->function == ActivationFunction::silu) norm.fused = FusedFunction::silu;
    if (options->function == ActivationFunction::hard_swish) norm.fused = FusedFunction::hard_swish;
    return norm.fused != FusedFunction::none;
  }

  [[nodiscard]] bool fits(LayerId norm) const {
    const Bytes tensor = bytes_of(layer(norm).outputs[0].with_batch(batch_), type_);
    return limit_.is_zero() || tensor.count() <= limit_.count() / kTensorsOfAddition;
  }

  [[nodiscard]] Value other_input(LayerId add, LayerId norm) const {
    const auto& inputs = layer(add).inputs;
    return inputs[0].layer == norm ? inputs[1] : inputs[0];
  }

  Network rewrite() const {
    Network result;
    result.name = network_.name;
    result.parameters = network_.parameters;
    std::vector<LayerId> moved(network_.layers.size());
    const auto renamed = [&](Value value) {
      return Value{moved[fates_[value.layer.index()].into.index()], value.output};
    };
    for (std::size_t l = 0; l < network_.layers.size(); ++l) {
      if (fates_[l].into != LayerId(l)) continue;
      moved[l] = LayerId(result.layers.size());
      Layer fused = network_.layers[l];
      for (Value& input : fused.inputs) input = renamed(input);
      if (fates_[l].addition.valid()) fused.inputs.push_back(renamed(other_input(fates_[l].addition, LayerId(l))));
      if (const BatchNormOptions& function = fates_[l].function; function.fused != FusedFunction::none) {
        auto& norm = std::get<BatchNormOptions>(fused.options);
        norm.fused = function.fused;
        norm.fused_minimum = function.fused_minimum, norm.fused_maximum = function.fused_maximum;
      }
      // Masks stay what they are without the rewrites.
      if (std::int64_t* const stream = random_stream(fused.options); stream != nullptr && *stream < 0)
        *stream = static_cast<std::int64_t>(l);
      result.layers.push_back(std::move(fused));
    }
    return result;
  }

  static constexpr std::int64_t kTensorsOfAddition = 4;  // x, y, two gradients; the results replace some

  const Network& network_;
  std::int64_t batch_;
  DataType type_;
  Bytes limit_;
  std::vector<Fate> fates_;
  std::vector<LayerId> consumers_;  // by layer: the last of its consumers
  std::vector<std::int32_t> uses_;  // by layer: of all its outputs
};

}  // namespace

Network fuse_layers(const Network& network, std::int64_t batch, DataType type, Bytes limit) {
  return Fuser(network, batch, type, limit).fuse();
}

}  // namespace tide
