// A step whose operands have views, planned by several policies and run by kernels that look at nothing but
// the addresses they are given.
#include <gtest/gtest.h>

#include <numeric>

#include "backend/forwarding_backend.h"
#include "executor/executor.h"
#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "support/on_device.h"
#include "support/parts_step.h"

namespace tide {
namespace {

using testing_support::PartsStep;

using Inputs = std::vector<std::span<const float>>;

// Any function will do that tells every element of every input apart.
void compute(TaskId task, const Inputs& inputs, std::span<float> output) {
  double sum = 0;
  std::size_t count = 0;
  for (const std::span<const float> input : inputs)
    for (const float value : input) sum += static_cast<double>(value) * static_cast<double>(++count % 97);
  const auto mean = static_cast<float>(sum / static_cast<double>(count));
  for (std::size_t i = 0; i < output.size(); ++i) {
    output[i] = mean + static_cast<float>(task.index());
    for (const std::span<const float> input : inputs) output[i] += 0.25F * input[i % input.size()];
  }
}

// The forward task of a replay, so that both compute the same.
TaskId forward_of(const Step& step, TaskId task) {
  for (std::size_t t = 0; t < step.replay_of.size(); ++t)
    if (step.replay_of[t] == task) return TaskId(t);
  return task;
}

class PartsBackend final : public ForwardingBackend {
 public:
  PartsBackend() : ForwardingBackend(make_backend("null")) {}
  struct Call {
    TaskId task;
    std::vector<std::byte*> addresses;
  };
  std::vector<Call> calls;

  [[nodiscard]] std::string_view name() const override { return "parts"; }
  [[nodiscard]] std::string description() const override { return "parts"; }
  void annotate(Step& step) const override { step.backend = description(); }

  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t /*algorithm*/) override {
    return [this, &step, task](const Launch& launch) {
      const std::span<const Operand> operands = step.operands_of(task);
      calls.push_back({task, {launch.operands, launch.operands + operands.size()}});
      std::vector<std::vector<float>> copies;  // results may be in place
      Inputs inputs;
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i].access == Access::read) {
          const std::span<float> values = values_at(step, operands[i], launch.operands[i]);
          copies.emplace_back(values.begin(), values.end());
        }
      for (const std::vector<float>& copy : copies) inputs.emplace_back(copy);
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i].access != Access::read)
          compute(forward_of(step, task), inputs, values_at(step, operands[i], launch.operands[i]));
    };
  }

 private:
  static std::span<float> values_at(const Step& step, const Operand& operand, std::byte* address) {
    return {reinterpret_cast<float*>(address), static_cast<std::size_t>(step.shape_of(operand).elements())};
  }
};

std::vector<float> numbers(std::int64_t count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  for (float& value : values) value /= 64;
  return values;
}

const std::vector<float> kGivenBatch = numbers(4 * PartsStep::kColumns, 3);
const std::vector<float> kParameter = numbers(16, 1000);

// The parameter after a step, by following the tasks with every tensor in memory of its own.
std::vector<float> expected() {
  const Step step = PartsStep::make();
  std::vector<std::vector<float>> tensors;
  for (const Tensor& tensor : step.tensors) tensors.emplace_back(static_cast<std::size_t>(tensor.shape.elements()));
  tensors[PartsStep::kX] = kGivenBatch;
  tensors[PartsStep::kOld] = kParameter;
  for (std::uint32_t t = 0; t < step.ordered_tasks; ++t) {
    const auto seen = [&](const Operand& operand) {
      return std::span(tensors[operand.tensor.index()])
          .subspan(step.offset_of(operand).size() / sizeof(float),
                   static_cast<std::size_t>(step.shape_of(operand).elements()));
    };
    Inputs inputs;
    for (const Operand& operand : step.operands_of(TaskId(t)))
      if (operand.access == Access::read) inputs.emplace_back(seen(operand));
    for (const Operand& operand : step.operands_of(TaskId(t)))
      if (operand.access != Access::read) compute(TaskId(t), inputs, seen(operand));
  }
  return tensors[PartsStep::kNew];
}

// Where the plan has an operand while op `index` runs.
std::byte* planned(const Phase& phase, const Arena& arena, std::size_t index, const Operand& operand) {
  const auto op = static_cast<std::int32_t>(index);
  for (const Residency& r : phase.residencies)
    if (r.storage == phase.step->tensor(operand.tensor).storage && r.tier == Tier::device && r.first <= op &&
        op <= r.last)
      return arena.at(r.address + phase.step->offset_of(operand));
  return nullptr;
}

void expect_planned_addresses(const Phase& phase, const Arena& arena, const std::vector<PartsBackend::Call>& calls) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    if (!phase.ops[i].is_run()) continue;
    ASSERT_LT(next, calls.size());
    const PartsBackend::Call& call = calls[next++];
    ASSERT_EQ(call.task, phase.ops[i].run().task);
    const std::span<const Operand> operands = phase.step->operands_of(call.task);
    for (std::size_t k = 0; k < operands.size(); ++k)
      EXPECT_EQ(call.addresses[k], planned(phase, arena, i, operands[k])) << task_name(*phase.step, call.task);
  }
  EXPECT_EQ(next, calls.size());
}

class ViewPolicies : public testing::TestWithParam<const char*> {};

TEST_P(ViewPolicies, HandKernelsWhatTheirViewsShow) {
  const Policy& policy = find_policy(GetParam());
  const RooflineModel cost(generic_cpu());
  PartsBackend backend;
  Step step = PartsStep::make();
  backend.annotate(step);
  const Bytes floor = make_plan(policy, step, cost, {}).floor[Tier::device];
  for (const std::optional<Bytes> memory : {std::optional<Bytes>(), std::optional(floor)})
    for (const bool guard : {true, false}) {
      const Plan plan = *make_plan(policy, step, cost, test::on_device(memory)).plan;
      Arena arena(backend, summarize(plan).peak[Tier::device]);
      const std::unique_ptr<Executor> made = make_executor(plan, backend, arena, {.guard = guard});
      Executor& executor = *made;
      executor.write(TensorId(PartsStep::kOld), kParameter);
      std::copy(kGivenBatch.begin(), kGivenBatch.end(), executor.input().begin());
      backend.calls.clear();
      executor.run({});
      expect_planned_addresses(plan.phases.front(), arena, backend.calls);
      std::vector<float> parameter(kParameter.size());
      executor.read(TensorId(PartsStep::kOld), parameter);
      EXPECT_EQ(parameter, expected());
    }
}

INSTANTIATE_TEST_SUITE_P(All, ViewPolicies,
                         testing::Values("baseline", "liveness", "offload", "superneurons", "sublinear", "auto"));

}  // namespace
}  // namespace tide
