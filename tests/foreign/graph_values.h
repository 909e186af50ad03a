// What a network, and a graph that was made of it, answer in the double interpreter.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backend/reference/interpreter.h"
#include "foreign/lower.h"
#include "network/kind.h"
#include "network/reordered.h"
#include "step/build.h"

namespace tide::test {

using ParameterValues = std::map<std::string, std::vector<float>>;

// Of every parameter; of variances above 0.
inline ParameterValues random_values(const Network& network, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.05F, 0.5F);
  ParameterValues values;
  for (const Parameter& parameter : network.parameters) {
    std::vector<float>& of = values[parameter.name];
    for (std::int64_t i = 0; i < parameter.shape.elements(); ++i)
      of.push_back(parameter.role == ParameterRole::running_variance ? std::abs(normal(generator)) + 0.5F
                                                                     : normal(generator));
  }
  return values;
}

inline ParameterValues values_of(const ForeignGraph& graph, const ImportedNetwork& imported) {
  ParameterValues values;
  for (const WeightName& weight : imported.weights) {
    const auto constant = graph.constants.find(weight.array);
    const ForeignTensor& tensor = constant != graph.constants.end() ? constant->second : imported.made.at(weight.array);
    values[weight.parameter] = to_parameter_order(weight, std::span<const float>(values_of(tensor)));
  }
  return values;
}

inline std::vector<double> random_batch(const Network& network, std::int64_t batch, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0.1, 1.0);
  std::vector<double> x(static_cast<std::size_t>(batch * network.input_sample().elements()));
  for (double& value : x) value = normal(generator);
  return x;
}

// What goes into the first loss, or the last result where there is none; in evaluation, in logical order.
inline std::vector<double> answer(const NetworkPtr& network, const ParameterValues& values, std::int64_t batch,
                                  const std::vector<double>& x) {
  StepOptions options;
  options.batch = batch;
  options.training = false;
  const auto step = std::make_shared<const Step>(build_step(network, options));
  ReferenceInterpreter interpreter(step);
  for (std::size_t t = 0; t < step->tensors.size(); ++t) {
    const Tensor& tensor = step->tensors[t];
    const TensorId id(t);
    if (step->storage(tensor.storage).persistent && tensor.parameter.valid()) {
      const std::vector<float>& of = values.at(network->parameters[tensor.parameter.index()].name);
      interpreter.set(id, std::vector<double>(of.begin(), of.end()));
    }
    if (tensor.tensor_class != TensorClass::input) continue;
    if (tensor.role == Role::x)
      interpreter.set_logical(id, x);
    else
      interpreter.set(id, std::vector<double>(static_cast<std::size_t>(tensor.shape.elements()), 0));
  }
  interpreter.run({.seed = 1, .update_count = 1, .global_batch = batch});
  TensorId last;
  for (std::uint32_t t = 0; t < step->ordered_tasks; ++t)
    for (const Operand& operand : step->operands_of(TaskId(t))) {
      const bool loss = is_loss(step->network->layer(step->tasks[t].layer));
      if (loss && operand.role == Role::x) return interpreter.get_logical(operand.tensor);
      if (!loss && operand.access == Access::write && operand.role == Role::y) last = operand.tensor;
    }
  return interpreter.get_logical(last);
}

}  // namespace tide::test
