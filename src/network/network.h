// The user's network: a validated DAG of layers in an order in which every layer comes
// after its inputs. Immutable once built; made by Builder or by assemble().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "network/layer.h"

namespace tide {

struct Network {
  std::string name;
  std::vector<Layer> layers;
  std::vector<Parameter> parameters;  // statistics included

  [[nodiscard]] const Layer& layer(LayerId id) const { return layers[id.index()]; }
  [[nodiscard]] const Shape& shape(Value value) const {
    return layers[value.layer.index()].outputs[static_cast<std::size_t>(value.output)];
  }
  // The number of trainable numbers, as papers count parameters (no running statistics).
  [[nodiscard]] std::int64_t parameter_count() const;
  // Labels that one sample carries, over all its loss layers; 0 without a loss.
  [[nodiscard]] std::int64_t labels_per_sample() const;
  // Those that data gives; behind them is what the host fills in (LossLabels::counted).
  [[nodiscard]] std::int64_t labels_of_data() const;
  [[nodiscard]] bool has_loss() const;
  // Classes of the (first) loss layer; 0 without one.
  [[nodiscard]] std::int64_t classes() const;
  [[nodiscard]] const Shape& input_sample() const;
  // A number that changes whenever any layer, option, shape or connection does.
  [[nodiscard]] std::uint64_t fingerprint() const;
};

using NetworkPtr = std::shared_ptr<const Network>;

// A layer as a file or a foreign graph names it: inputs by name ("split1:2" is the third
// output of split1), in any order.
struct LayerSpec {
  LayerKind kind = LayerKind::input;
  std::string name;
  std::vector<std::string> inputs;
  LayerOptions options;
  std::string share;  // take the parameters of this layer instead of new ones
  bool frozen = false;
  int mirror = 0;
};

// Sorts, connects, infers shapes and validates. Throws an Error that names the layer for
// an unknown input, a duplicate name, a cycle, or shapes that do not fit.
[[nodiscard]] Network assemble(std::string name, std::vector<LayerSpec> specs);

}  // namespace tide
