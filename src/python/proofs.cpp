// What the library's numbers are held against other frameworks' with: one step in double precision, and the random
// masks of dropout and drop path.
#include <bit>

#include "batches.h"
#include "errors.h"
#include "named_network.h"

namespace tide::python {
namespace {

NetworkPtr without_random(const NetworkPtr& network) {
  auto changed = std::make_shared<Network>(*network);
  for (Layer& layer : changed->layers) {
    if (auto* const dropout = std::get_if<DropoutOptions>(&layer.options)) dropout->rate = 0;
    if (auto* const path = std::get_if<DropPathOptions>(&layer.options)) path->rate = 0;
  }
  return changed;
}

std::vector<double> doubles_in(nb::handle array, const std::string& what) { return doubles_of(tensor_of(array, what)); }

class ExactStep {
 public:
  ExactStep(const NamedNetwork& network, nb::handle samples, nb::handle targets, std::uint64_t seed,
            std::uint64_t step_number, bool random, bool training)
      : named_(network), seed_(seed), step_number_(step_number) {
    const ArrayBatch checked(*network.network(), samples,
                             training ? targets_by_loss(*network.network(), targets) : nothing());
    batch_ = checked.size();
    input_ = doubles_in(samples, "the samples");
    labels_.resize(static_cast<std::size_t>(batch_ * network.network()->labels_per_sample()));
    if (training) read_labels(checked);
    StepOptions options;
    options.batch = batch_;
    options.training = training;
    options.optimizer.kind = OptimizerKind::sgd;
    step_ = std::make_shared<const Step>(
        build_step(random ? network.network() : without_random(network.network()), options));
  }

  nb::dict run() {
    ReferenceInterpreter interpreter(step_);
    {
      const nb::gil_scoped_release released;
      set_all(interpreter);
      interpreter.run({.seed = seed_,
                       .step = step_number_,
                       .learning_rate = 1,
                       .update_count = 1,
                       .first_sample = 0,
                       .global_batch = batch_});
    }
    return step_->options.training ? training_results(interpreter) : forward_results(interpreter);
  }

 private:
  std::vector<nb::object> nothing() const {
    if (named_.network()->has_loss())
      throw Error("{} has a loss; import it without one to see what it answers", named_.network()->name);
    return {};
  }

  void read_labels(const ArrayBatch& from) {
    const std::size_t stride = labels_.size() / static_cast<std::size_t>(batch_);
    std::vector<float> values(static_cast<std::size_t>(named_.network()->input_sample().per_sample()));
    std::vector<std::int32_t> labels(stride);
    std::vector<std::int32_t> all;
    for (std::int64_t n = 0; n < batch_; ++n) {
      from.read(n, values, labels);
      all.insert(all.end(), labels.begin(), labels.end());
    }
    count_labels(*named_.network(), all, batch_);
    for (std::size_t i = 0; i < all.size(); ++i) labels_[i] = static_cast<double>(all[i]);
  }

  const NamedArray& array_of_parameter(ParameterId id) const {
    for (const NamedArray& array : named_.arrays())
      if (array.id == id) return array;
    throw Error("parameter {} has no array", id.value());
  }

  void set_all(ReferenceInterpreter& interpreter) const {
    for (const Storage& storage : step_->storages) {
      if (!storage.persistent || !storage.entry.valid()) continue;
      const ParameterId parameter = step_->tensor(storage.entry).parameter;
      const bool wanted =
          storage.tensor_class == TensorClass::parameter || storage.tensor_class == TensorClass::running_statistics;
      if (wanted && parameter.valid())
        interpreter.set(storage.entry, named_.exact_start_value(array_of_parameter(parameter), seed_));
    }
    for (std::size_t t = 0; t < step_->tensors.size(); ++t) {
      const Tensor& tensor = step_->tensors[t];
      if (tensor.tensor_class == TensorClass::input)
        interpreter.set_logical(TensorId(t), tensor.role == Role::x ? input_ : labels_);
    }
  }

  nb::dict training_results(const ReferenceInterpreter& interpreter) const {
    double loss = 0;
    nb::dict gradients, statistics;
    std::size_t metrics = 0;
    for (std::size_t t = 0; t < step_->tensors.size(); ++t) {
      const Tensor& tensor = step_->tensors[t];
      if (tensor.tensor_class == TensorClass::metric) {
        loss += interpreter.get(TensorId(t))[0] / (static_cast<double>(batch_) * positions_of_loss(metrics++));
      } else if (tensor.tensor_class == TensorClass::parameter_gradient) {
        const NamedArray& array = array_of_parameter(tensor.parameter);
        gradients[array.name.array.c_str()] =
            array_of(to_array_order(array.name, std::span<const double>(interpreter.get(TensorId(t)))), array.shape);
      }
    }
    for (const Storage& storage : step_->storages) {
      if (storage.tensor_class != TensorClass::running_statistics) continue;
      const NamedArray& array = array_of_parameter(step_->tensor(storage.entry).parameter);
      statistics[array.name.array.c_str()] = array_of(std::vector<double>(interpreter.get(storage.exit)), array.shape);
    }
    nb::dict result;
    result["loss"] = loss;
    result["gradients"] = gradients;
    result["statistics"] = statistics;
    return result;
  }

  // A sum over labels: over those of its loss it becomes a mean.
  [[nodiscard]] double positions_of_loss(std::size_t nth) const {
    const std::vector<LossLabels> losses = loss_labels(*named_.network());
    const LossLabels& loss = losses.at(std::min(nth, losses.size() - 1));
    const std::int64_t count = loss.counted ? loss.count - 1 : loss.count;
    return static_cast<double>(loss.floats && loss.classes > 0 ? count / loss.classes : count);
  }

  nb::dict forward_results(const ReferenceInterpreter& interpreter) const {
    const Network& network = *step_->network;
    std::vector<bool> read(network.layers.size(), false);
    for (const Layer& layer : network.layers)
      for (const Value input : layer.inputs) read[input.layer.index()] = true;
    nb::dict outputs;
    for (std::uint32_t t = 0; t < step_->ordered_tasks; ++t)
      for (const Operand& operand : step_->operands_of(TaskId(t))) {
        const LayerId layer = step_->task(TaskId(t)).layer;
        if (operand.access != Access::write || operand.role != Role::y || read[layer.index()]) continue;
        const Tensor& tensor = step_->tensor(operand.tensor);
        outputs[network.layer(layer).name.c_str()] =
            array_of(interpreter.get_logical(operand.tensor), extents_of(tensor.shape));
      }
    nb::dict result;
    result["outputs"] = outputs;
    return result;
  }

  const NamedNetwork& named_;
  std::uint64_t seed_, step_number_;
  std::int64_t batch_ = 0;
  std::vector<double> input_, labels_;
  StepPtr step_;
};

// What a layer's values are multiplied by: 0, or 1 / (1 - rate). In logical order; of drop path, one number for each
// sample or channel.
FloatArray mask_of(const Network& network, std::size_t l, std::int64_t batch, std::uint64_t seed, std::uint64_t step) {
  const Layer& layer = network.layers[l];
  const auto* const dropout = std::get_if<DropoutOptions>(&layer.options);
  const auto* const path = std::get_if<DropPathOptions>(&layer.options);
  LayerOptions options = layer.options;
  const std::int64_t stream = *random_stream(options);
  const auto key = static_cast<std::uint32_t>(stream < 0 ? static_cast<std::int64_t>(l) : stream);
  const double rate = dropout != nullptr ? dropout->rate : path->rate;
  const Shape& sample = layer.outputs[0];
  const std::int64_t channels = sample.channels(), positions = dropout != nullptr ? sample.positions() : 1;
  const std::int64_t units = dropout != nullptr ? sample.per_sample() : path->per_channel ? channels : 1;
  std::vector<float> values(static_cast<std::size_t>(checked_multiply(batch, units)));
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t unit = 0; unit < units; ++unit) {
      const auto number = static_cast<std::uint64_t>(unit);
      const Random4 bits = random_block(seed, RandomUse::dropout, step, key, static_cast<std::uint64_t>(n), number / 4);
      const bool keeps = to_unit(bits[number % 4]) >= static_cast<float>(rate);
      const std::int64_t place = dropout != nullptr ? (unit % channels) * positions + unit / channels : unit;
      values[static_cast<std::size_t>(n * units + place)] = keeps ? static_cast<float>(1 / (1 - rate)) : 0.0F;
    }
  std::vector<std::int64_t> extents = extents_of(sample);
  extents[0] = batch;
  if (dropout == nullptr)
    for (std::size_t axis = 1; axis < extents.size(); ++axis)
      extents[axis] = axis == 1 && path->per_channel ? channels : 1;
  return array_of(std::move(values), std::move(extents));
}

nb::dict masks(const NamedNetwork& network, std::int64_t batch, std::uint64_t seed, std::uint64_t step) {
  nb::dict result;
  const Network& all = *network.network();
  for (std::size_t l = 0; l < all.layers.size(); ++l)
    if (all.layers[l].kind == LayerKind::dropout || all.layers[l].kind == LayerKind::drop_path)
      result[all.layers[l].name.c_str()] = mask_of(all, l, batch, seed, step);
  return result;
}

}  // namespace

void bind_proofs(nb::module_& module) {
  using namespace nb::literals;
  module.def(
      "exact_step",
      [](const NamedNetwork& network, nb::handle samples, nb::handle targets, std::uint64_t seed, std::uint64_t step,
         bool random,
         bool training) { return ExactStep(network, samples, targets, seed, step, random, training).run(); },
      "network"_a, "samples"_a, "targets"_a = nb::none(), "seed"_a = kSeed, "step"_a = 0, "random"_a = false,
      "training"_a = true,
      nb::sig("def exact_step(network: Network, samples: object, targets: object = None, seed: int = 1, step: int = 0, "
              "random: bool = False, training: bool = True) -> dict"),
      "One step in double precision, slow: loss, gradients and statistics by array; or what a network without a loss "
      "answers. `random`: with dropout and drop path.");
  module.def("masks", &masks, "network"_a, "batch"_a, "seed"_a = kSeed, "step"_a = 0,
             nb::sig("def masks(network: Network, batch: int, seed: int = 1, step: int = 0) -> dict"),
             "By layer, what dropout and drop path multiply a batch's values by in that step.");
}

}  // namespace tide::python
