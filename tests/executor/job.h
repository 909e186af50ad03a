// One plan with its arena and executor, filled with reproducible values: what a Session is
// made of, for tests that want to look at the parts.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "executor/executor.h"
#include "golden/formula.h"
#include "memory/spill_file.h"
#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"

namespace tide::test {

// The cpu backend, or null in a build without it. One thread: on a busy machine OpenMP's
// spinning threads take many times as long.
inline std::unique_ptr<Backend> cpu_backend(int threads = 1) {
  try {
    return make_backend("cpu", threads);
  } catch (const Error&) {
    return nullptr;
  }
}

inline std::unique_ptr<Backend> fastest_backend() {
  std::unique_ptr<Backend> cpu = cpu_backend();
  return cpu ? std::move(cpu) : make_backend("reference");
}

inline NetworkPtr shared_network(Network network) { return std::make_shared<const Network>(std::move(network)); }

inline StepOptions training_step(std::int64_t batch, const OptimizerOptions& optimizer = {}) {
  return {.batch = batch, .rules = Rules::minimal, .training = true, .optimizer = optimizer};
}

inline PlanResult result_for(const NetworkPtr& network, const Backend& backend, std::string_view policy,
                             const StepOptions& options, const PlanningContext& planner) {
  Step step = build_step(network, options);
  backend.annotate(step);
  return make_plan(find_policy(policy), std::move(step), RooflineModel(generic_cpu()), planner);
}
inline Plan plan_for(const NetworkPtr& network, const Backend& backend, std::string_view policy,
                     const StepOptions& options) {
  return *result_for(network, backend, policy, options, {}).plan;
}

// Values of all parameters and statistics, by the formula of the golden references.
using ParameterValues = std::vector<std::vector<float>>;
inline ParameterValues formula_values(const Network& network) {
  ParameterValues values;
  for (const Parameter& parameter : network.parameters) values.push_back(golden::parameter_values(parameter));
  return values;
}

inline constexpr ExecutorOptions kGuarded{.guard = true};

class Job {
 public:
  Job(Plan plan, Backend& backend, const ExecutorOptions& options = kGuarded, std::unique_ptr<Store> disk = nullptr,
      std::unique_ptr<Store> lent = nullptr)
      : plan_(std::move(plan)),
        backend_(backend),
        own_(std::make_unique<Arena>(backend, summarize(plan_).peak[Tier::device])),
        arena_(*own_),
        disk_(std::move(disk)),
        lent_(std::move(lent)),
        executor_(make_executor(plan_, backend_, Tiers(arena_, nullptr, disk_.get(), lent_.get()), options)) {}
  // In an arena that other jobs use as well.
  Job(Plan plan, Backend& backend, Arena& arena, const ExecutorOptions& options = kGuarded)
      : plan_(std::move(plan)),
        backend_(backend),
        arena_(arena),
        executor_(make_executor(plan_, backend_, arena_, options)) {}

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const Step& step() const { return executor_->step(); }
  [[nodiscard]] Executor& executor() { return *executor_; }

  // Everything that persists: parameters and statistics as given, optimizer state zero.
  void set_state(const ParameterValues& parameters) {
    for (const Storage& storage : step().storages) {
      if (!storage.persistent || !storage.entry.valid()) continue;
      const Tensor& tensor = step().tensor(storage.entry);
      const std::vector<float>& values = parameters[tensor.parameter.index()];
      const bool moment = tensor.tensor_class == TensorClass::optimizer_state;
      executor_->write(storage.entry, moment ? std::vector<float>(values.size(), 0.0F) : values);
    }
  }

  // The batch of the golden references, moved on by `offset` batches.
  void set_batch(std::int64_t offset = 0) {
    const Shape shape = step().network->input_sample().with_batch(batch_of(plan_));
    const std::span<float> input = executor_->input();
    for_each_element(shape, MemoryOrder::channels_last(shape.rank()), [&](std::size_t from, std::size_t to) {
      input[to] = golden::input_value(offset * shape.elements() + static_cast<std::int64_t>(from));
    });
    const std::span<std::int32_t> labels = executor_->labels();
    const auto first = offset * static_cast<std::int64_t>(labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = golden::label_value(first + static_cast<std::int64_t>(i), step().network->classes());
  }

  // One step over batch number `index`; returns its loss.
  double run(std::uint64_t index = 0, double learning_rate = 0.01) {
    set_batch(static_cast<std::int64_t>(index));
    executor_->run(state(index, learning_rate));
    return executor_->metric().loss;
  }
  double run_steps(std::uint64_t count, double learning_rate = 0.01) {
    double loss = 0;
    for (std::uint64_t i = 0; i < count; ++i) loss = run(i, learning_rate);
    return loss;
  }

  [[nodiscard]] StepState state(std::uint64_t index, double learning_rate) const {
    return {.seed = 3,
            .step = index,
            .learning_rate = learning_rate,
            .update_count = static_cast<std::int64_t>(index) + 1,
            .first_sample = 0,
            .global_batch = batch_of(plan_)};
  }

  // A persistent value in logical order.
  [[nodiscard]] std::vector<float> read(TensorId tensor) const {
    std::vector<float> values(static_cast<std::size_t>(step().tensor(tensor).shape.elements()));
    executor_->read(tensor, values);
    return values;
  }
  // The same for any tensor whose storage keeps its memory to the end of the step.
  [[nodiscard]] std::vector<float> read_last(TensorId tensor) {
    const StorageId storage = step().tensor(tensor).storage;
    const Phase& phase = plan_.phases.front();
    std::vector<float> values(static_cast<std::size_t>(step().tensor(tensor).shape.elements()));
    for (const Residency& r : phase.residencies)
      if (r.storage == storage && r.last == static_cast<std::int32_t>(phase.ops.size()))
        backend_.read_tensor(step(), tensor, arena_.at(r.address), values);
    return values;
  }

  // Of all that persists, bit for bit.
  [[nodiscard]] std::uint64_t state_hash() const {
    Fnv hash;
    for (const Storage& storage : step().storages) {
      if (!storage.persistent || !storage.entry.valid()) continue;
      hash.add(read(storage.entry));
    }
    return hash.value();
  }

 private:
  Plan plan_;
  Backend& backend_;
  std::unique_ptr<Arena> own_;
  Arena& arena_;
  std::unique_ptr<Store> disk_, lent_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace tide::test
