// Properties of single kernels that a comparison with the reference does not show.
#include <limits>

#include "backend/network_cases.h"
#include "backend/task_runner.h"

namespace tide::test {
namespace {

// The first task of this kind and layer kind.
TaskId find_task(const Step& step, LayerKind layer, TaskKind kind) {
  for (std::size_t t = 0; t < step.tasks.size(); ++t)
    if (step.tasks[t].kind == kind && step.layer_kind(step.tasks[t]) == layer) return TaskId(t);
  throw Error("no such task");
}

TensorId tensor_of(const Step& step, TaskId task, Role role) {
  for (const Operand& operand : step.operands_of(task))
    if (operand.role == role) return operand.tensor;
  throw Error("no such operand");
}

std::vector<double> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(generator);
  return as_floats(values);
}

class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = tested_backend(1);
    if (backend_ == nullptr) GTEST_SKIP() << no_backend();
  }

  // Annotated, with the inputs filled in.
  StepPtr step_of(const NetworkPtr& network, const StepOptions& options) const {
    Step step = build_step(network, options);
    backend_->annotate(step);
    return std::make_shared<const Step>(std::move(step));
  }

  std::shared_ptr<Backend> backend_;
};

TEST_F(KernelTest, MaxPoolBackwardFromIndicesEqualsFromInput) {
  for (const NetworkCase& entry : record_of(LayerKind::max_pool).cases) {
    const NetworkPtr network = entry.network();
    SCOPED_TRACE(entry.name);
    const StepPtr minimal = step_of(network, step_options(entry.batch));
    const StepPtr superneurons = step_of(network, step_options(entry.batch, Rules::superneurons));
    const TaskId forward = find_task(*minimal, LayerKind::max_pool, TaskKind::forward);
    const TaskId from_indices = find_task(*minimal, LayerKind::max_pool, TaskKind::backward);
    const TaskId from_input = find_task(*superneurons, LayerKind::max_pool, TaskKind::backward);
    const auto size = [](const Step& step, TensorId id) {
      return static_cast<std::size_t>(step.tensor(id).shape.elements());
    };

    ReferenceInterpreter first(minimal), second(superneurons);
    const TensorId x = tensor_of(*minimal, forward, Role::x), dy = tensor_of(*minimal, from_indices, Role::dy);
    const std::vector<double> values = random_values(size(*minimal, x), 1),
                              gradients = random_values(size(*minimal, dy), 2);
    first.set(x, values);
    first.set(dy, gradients);
    second.set(tensor_of(*superneurons, from_input, Role::x), values);
    second.set(tensor_of(*superneurons, from_input, Role::dy), gradients);
    TaskRunner runner(*backend_, *minimal), other(*backend_, *superneurons);
    const auto made = runner.run(forward, first, {});
    for (const auto& [position, numbers] : made) {
      const TensorId tensor = minimal->operands_of(forward)[position].tensor;
      first.set_logical(tensor, numbers);
      if (minimal->operands_of(forward)[position].role == Role::y)
        second.set_logical(tensor_of(*superneurons, from_input, Role::y), numbers);
    }
    EXPECT_EQ(runner.run(from_indices, first, {}).begin()->second, other.run(from_input, second, {}).begin()->second);
  }
}

// A network that has diverged must say so.
TEST_F(KernelTest, NanPassesThrough) {
  for (const OperatorRecord& record : operator_table()) {
    if (!record.passes_nan) continue;
    const NetworkCase& entry = record.cases.front();
    const StepPtr step = step_of(entry.network(), step_options(entry.batch));
    ReferenceInterpreter values(step);
    fill_inputs(*step, values);
    TaskRunner runner(*backend_, *step);
    const StepState state = test_state(*step);
    bool seen = false;
    for (std::size_t t = 0; t < step->ordered_tasks && step->tasks[t].kind == TaskKind::forward; ++t) {
      for (const auto& [position, numbers] : runner.run(TaskId(t), values, state)) {
        std::vector<double> made = numbers;
        if (t == 0) made[0] = std::numeric_limits<double>::quiet_NaN();
        if (t > 0) seen = seen || std::any_of(made.begin(), made.end(), [](double v) { return std::isnan(v); });
        values.set_logical(step->operands_of(TaskId(t))[position].tensor, made);
      }
    }
    EXPECT_TRUE(seen) << entry.name;
  }
}

// The masks of sub-batches are those of the whole batch.
TEST_F(KernelTest, DropoutMaskFollowsTheSample) {
  Builder net("dropout");
  net.softmax_cross_entropy(net.dropout(net.convolution(net.input({1, 3, 5, 7}), {.channels = 3})));
  const auto network = std::make_shared<const Network>(std::move(net).build());
  const StepPtr whole = step_of(network, step_options(4)), half = step_of(network, step_options(2));
  const TaskId task = find_task(*whole, LayerKind::dropout, TaskKind::forward);
  const auto run = [&](const StepPtr& step, std::int64_t first_sample) {
    ReferenceInterpreter ones(step);
    const TensorId x = tensor_of(*step, task, Role::x);
    ones.set(x, std::vector<double>(static_cast<std::size_t>(step->tensor(x).shape.elements()), 1.0));
    StepState state = test_state(*step);
    state.first_sample = first_sample;
    TaskRunner runner(*backend_, *step);
    return runner.run(task, ones, state).begin()->second;
  };
  std::vector<double> parts = run(half, 10);
  const std::vector<double> rest = run(half, 12);
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(run(whole, 10), parts);
  EXPECT_EQ(std::count(parts.begin(), parts.end(), 2.0) + std::count(parts.begin(), parts.end(), 0.0),
            static_cast<std::ptrdiff_t>(parts.size()));
}

// Labels that name no class: padding of sequences, borders of segmentations.
TEST_F(KernelTest, LabelsOutsideTheClassesDoNotCount) {
  Builder net("loss");
  net.softmax_cross_entropy(net.convolution(net.input({1, 3, 2, 2}), {.channels = 4}), {.label_smoothing = 0.1});
  const StepPtr step = step_of(std::make_shared<const Network>(std::move(net).build()), step_options(1));
  const TaskId forward = find_task(*step, LayerKind::softmax_cross_entropy, TaskKind::forward);
  const TaskId backward = find_task(*step, LayerKind::softmax_cross_entropy, TaskKind::backward);
  ReferenceInterpreter reference(step);
  reference.set(tensor_of(*step, forward, Role::x), random_values(16, 3));
  reference.set(tensor_of(*step, forward, Role::labels), {1, -1, 4, 3});
  const StepState state = test_state(*step);
  TaskRunner runner(*backend_, *step);
  for (const TaskId task : {forward, backward}) {
    const auto results = runner.run(task, reference, state);
    reference.run_task(task, state);
    for (const auto& [position, numbers] : results)
      EXPECT_LE(relative_error(numbers, reference.get_logical(step->operands_of(task)[position].tensor)), 1e-5);
  }
  const std::vector<double>& dx = reference.get(tensor_of(*step, backward, Role::dx));
  EXPECT_EQ(std::vector<double>(dx.begin() + 4, dx.begin() + 12), std::vector<double>(8, 0.0));
}

}  // namespace
}  // namespace tide::test
