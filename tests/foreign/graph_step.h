// One training step of an imported graph in the double interpreter, with dropout and drop path off.
#pragma once

#include <stdexcept>

#include "foreign/graph_values.h"

namespace tide::test {

using DoubleArrays = std::map<std::string, std::vector<double>>;

struct GraphStep {
  double loss = 0;
  DoubleArrays gradients, statistics;  // by array of the graph, as they lie there
};

inline NetworkPtr without_random(const Network& network) {
  Network changed = network;
  for (Layer& layer : changed.layers) {
    if (auto* const dropout = std::get_if<DropoutOptions>(&layer.options)) dropout->rate = 0;
    if (auto* const path = std::get_if<DropPathOptions>(&layer.options)) path->rate = 0;
  }
  return std::make_shared<const Network>(std::move(changed));
}

inline GraphStep step_of(const ForeignGraph& graph, const ImportedNetwork& imported, std::int64_t batch,
                         const std::vector<double>& x, const std::vector<double>& labels) {
  std::map<std::string, const WeightName*> weights;
  for (const WeightName& weight : imported.weights) weights[weight.parameter] = &weight;
  const ParameterValues values = values_of(graph, imported);
  StepOptions options;
  options.batch = batch;
  options.optimizer.kind = OptimizerKind::sgd;
  const auto step = std::make_shared<const Step>(build_step(without_random(*imported.network), options));
  ReferenceInterpreter interpreter(step);
  const auto name_of = [&](ParameterId id) { return imported.network->parameters[id.index()].name; };
  for (const Storage& storage : step->storages) {
    if (!storage.persistent || !storage.entry.valid() || !step->tensor(storage.entry).parameter.valid()) continue;
    if (storage.tensor_class != TensorClass::parameter && storage.tensor_class != TensorClass::running_statistics)
      continue;
    const std::vector<float>& of = values.at(name_of(step->tensor(storage.entry).parameter));
    interpreter.set(storage.entry, std::vector<double>(of.begin(), of.end()));
  }
  for (std::size_t t = 0; t < step->tensors.size(); ++t)
    if (step->tensors[t].tensor_class == TensorClass::input)
      interpreter.set_logical(TensorId(t), step->tensors[t].role == Role::x ? x : labels);
  interpreter.run(
      {.seed = 1, .step = 0, .learning_rate = 1, .update_count = 1, .first_sample = 0, .global_batch = batch});
  GraphStep result;
  for (std::size_t t = 0; t < step->tensors.size(); ++t) {
    const Tensor& tensor = step->tensors[t];
    if (tensor.tensor_class == TensorClass::metric)
      result.loss += interpreter.get(TensorId(t))[0] / static_cast<double>(labels.size());
    if (tensor.tensor_class != TensorClass::parameter_gradient) continue;
    const WeightName& weight = *weights.at(name_of(tensor.parameter));
    const std::vector<double> gradient = interpreter.get(TensorId(t));
    result.gradients[weight.array] = to_array_order(weight, std::span<const double>(gradient));
  }
  for (const Storage& storage : step->storages)
    if (storage.tensor_class == TensorClass::running_statistics)
      result.statistics[weights.at(name_of(step->tensor(storage.entry).parameter))->array] =
          interpreter.get(storage.exit);
  return result;
}

// |a - b| by |b|.
inline double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) throw std::runtime_error("there are other numbers of values");
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  return std::sqrt(difference / std::max(length, 1e-60));
}

}  // namespace tide::test
