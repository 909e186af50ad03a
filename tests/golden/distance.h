// How far one training step of a network is from PyTorch's in double precision: the loss, every
// gradient and every running statistic.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "executor/job.h"
#include "golden/reference.h"
#include "zoo/zoo.h"

namespace tide::test {

using golden::Reference;
using golden::Summary;

struct Outcome {
  double loss = 0;
  std::map<std::string, Summary> gradients, statistics;
};

// A plain update with rate 1: what a parameter loses is its gradient.
inline StepOptions golden_step(const Reference& reference) {
  StepOptions options;
  options.batch = reference.batch;
  options.optimizer.kind = OptimizerKind::sgd;
  return options;
}

inline NetworkPtr golden_network(const Reference& reference) {
  return shared_network(golden::without_dropout(make_model(reference.model, reference.sample)));
}

template <typename Visit>
void for_each_gradient(const Step& step, Visit visit) {
  for (std::size_t t = 0; t < step.tensors.size(); ++t)
    if (step.tensors[t].tensor_class == TensorClass::parameter_gradient)
      visit(TensorId(t), step.network->parameters[step.tensors[t].parameter.index()].name);
}

template <typename Visit>
void for_each_statistic(const Step& step, Visit visit) {
  for (const Storage& storage : step.storages)
    if (storage.tensor_class == TensorClass::running_statistics)
      visit(storage, step.network->parameters[step.tensor(storage.entry).parameter.index()].name);
}

inline Outcome run_on(Job& job) {
  Outcome outcome;
  job.set_state(formula_values(*job.step().network));
  outcome.loss = job.run(0, 1.0);
  for_each_gradient(job.step(), [&](TensorId id, const std::string& name) {
    const std::vector<float> values = job.read_last(id);
    outcome.gradients[name] = golden::summarize<float>(name, values);
  });
  for_each_statistic(job.step(), [&](const Storage& storage, const std::string& name) {
    const std::vector<float> values = job.read(storage.entry);
    outcome.statistics[name] = golden::summarize<float>(name, values);
  });
  return outcome;
}

// Relative errors of all summaries: the largest difference of norm or products, over the
// norm. Some gradients are mathematically zero: hence the thousandth of the median norm.
struct Errors {
  std::vector<double> sorted;
  std::string worst;

  [[nodiscard]] double largest() const { return sorted.empty() ? 0 : sorted.back(); }
  [[nodiscard]] double of_half() const { return sorted.empty() ? 0 : sorted[sorted.size() / 2]; }
};

inline Errors compare(const std::map<std::string, Summary>& actual, const std::map<std::string, Summary>& expected) {
  std::vector<double> norms;
  for (const auto& [name, summary] : expected) norms.push_back(summary.norm);
  std::sort(norms.begin(), norms.end());
  Errors errors;
  for (const auto& [name, summary] : expected) {
    const auto it = actual.find(name);
    if (it == actual.end()) {
      ADD_FAILURE() << name << " is missing";
      continue;
    }
    double difference = std::abs(it->second.norm - summary.norm);
    for (std::size_t j = 0; j < 4; ++j)
      difference = std::max(difference, std::abs(it->second.products[j] - summary.products[j]));
    const double error = difference / (summary.norm + 1e-3 * norms[norms.size() / 2]);
    if (!(error <= errors.largest())) errors.worst = name;
    errors.sorted.push_back(error);
    std::inplace_merge(errors.sorted.begin(), errors.sorted.end() - 1, errors.sorted.end());
  }
  EXPECT_EQ(actual.size(), expected.size());
  return errors;
}

struct Distance {
  double loss = 0;
  Errors gradients, statistics;
};

inline Distance distance(const Outcome& outcome, const Reference& reference) {
  const Distance result{std::abs(outcome.loss - reference.loss) / reference.loss,
                        compare(outcome.gradients, reference.gradients),
                        compare(outcome.statistics, reference.statistics)};
  fmt::print(
      "{}: relative errors: loss {:.1e}; {} gradients at most {:.1e} ({}), median {:.1e}; {} statistics at most "
      "{:.1e}\n",
      reference.model, result.loss, result.gradients.sorted.size(), result.gradients.largest(), result.gradients.worst,
      result.gradients.of_half(), result.statistics.sorted.size(), result.statistics.largest());
  return result;
}

}  // namespace tide::test
