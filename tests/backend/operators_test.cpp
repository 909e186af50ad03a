// Every task of every case on the tested backend against the double-precision reference,
// from the same operands.
#include "backend/compare_tasks.h"
#include "backend/network_cases.h"

namespace tide::test {
namespace {

// One thread where nothing depends on their number: threads that wait for each other make
// small tasks slow on a busy machine.
class OperatorTest : public testing::TestWithParam<NetworkCase> {
 protected:
  void SetUp() override {
    backend_ = tested_backend(1);
    if (backend_ == nullptr) GTEST_SKIP() << no_backend();
  }
  std::shared_ptr<Backend> backend_;
};

TEST_P(OperatorTest, MatchesReference) {
  Step step = build_step(GetParam().network(), step_options(GetParam().batch));
  compare_all_tasks(*tested_backend(2), step, GetParam().tolerance);
}

TEST_P(OperatorTest, MatchesReferenceUnderSuperneuronsRules) {
  Step step = build_step(GetParam().network(), step_options(GetParam().batch, Rules::superneurons));
  compare_all_tasks(*backend_, step, GetParam().tolerance);
}

TEST_P(OperatorTest, MatchesReferenceForwardOnly) {
  Step step = build_step(GetParam().network(), step_options(GetParam().batch, Rules::minimal, false));
  compare_all_tasks(*backend_, step, GetParam().tolerance);
}

// Two samples at a time, with batch norms over all three.
TEST_P(OperatorTest, MatchesReferenceInSubBatches) {
  StepOptions options = step_options(3);
  options.sub_batch = 2;
  Step step = build_step(GetParam().network(), options);
  compare_all_tasks(*backend_, step, GetParam().tolerance);
}

// The same tasks adding to gradients that are already there.
TEST_P(OperatorTest, Accumulates) {
  Step step = build_step(GetParam().network(), step_options(GetParam().batch));
  const auto accumulated = std::make_shared<Step>(step);
  std::vector<TaskId> changed;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const Task& task = step.tasks[t];
    for (std::uint32_t o = task.first_operand; o < task.first_operand + task.operand_count; ++o) {
      Operand& operand = accumulated->operands[o];
      if (operand.role != Role::d_weight && operand.role != Role::d_bias) continue;
      operand.access = Access::accumulate;
      if (changed.empty() || changed.back() != TaskId(t)) changed.emplace_back(t);
    }
  }
  ASSERT_FALSE(changed.empty());
  backend_->annotate(*accumulated);
  const StepState state = test_state(step);
  ReferenceInterpreter reference(accumulated);
  fill_inputs(step, reference);
  for (const TaskId id : changed)  // any gradients will do as the start
    for (const Operand& operand : accumulated->operands_of(id))
      if (operand.access == Access::accumulate)
        reference.set(operand.tensor,
                      as_floats(std::vector<double>(
                          static_cast<std::size_t>(accumulated->tensor(operand.tensor).shape.elements()), 0.7)));
  TaskRunner runner(*backend_, *accumulated);
  for (std::size_t t = 0; t < accumulated->ordered_tasks; ++t) {
    const TaskId id(t);
    SCOPED_TRACE(task_name(*accumulated, id));
    const bool compared = std::find(changed.begin(), changed.end(), id) != changed.end();
    const auto results = compared ? runner.run(id, reference, state) : std::map<std::size_t, std::vector<double>>{};
    reference.run_task(id, state);
    for (const auto& [position, values] : results) {
      const TensorId tensor = accumulated->operands_of(id)[position].tensor;
      EXPECT_LE(relative_error(values, reference.get_logical(tensor)), GetParam().tolerance);
    }
    round_written(*accumulated, id, reference);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, OperatorTest, testing::ValuesIn(all_cases()),
                         [](const auto& entry) { return entry.param.name; });

class PartsTest : public OperatorTest {};

// Four parts of one sample, each by itself until their sums and statistics meet.
TEST_P(PartsTest, MatchesReference) {
  StepOptions options = step_options(4);
  options.ranks.parts = 4;
  const NetworkPtr network = GetParam().network();
  if (shares_batch_norm(*network)) {
    EXPECT_THROW(static_cast<void>(build_step(network, options)), Error);
    return;
  }
  Step step = build_step(network, options);
  compare_all_tasks(*backend_, step, GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(Cases, PartsTest, testing::ValuesIn(parts_cases()),
                         [](const auto& entry) { return entry.param.name; });

class LargeOperatorTest : public OperatorTest {};

TEST_P(LargeOperatorTest, MatchesReference) {
  for (const Rules rules : {Rules::minimal, Rules::superneurons}) {
    Step step = build_step(GetParam().network(), step_options(GetParam().batch, rules));
    compare_all_tasks(*tested_backend(3), step, GetParam().tolerance, is_first_sum);
  }
}

TEST(HugeOperatorTest, MatchesReference) {
  const auto backend = tested_backend();
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  Step step = build_step(huge_case().network(), step_options(huge_case().batch));
  compare_all_tasks(*backend, step, kTolerance, is_first_sum);
}

INSTANTIATE_TEST_SUITE_P(Cases, LargeOperatorTest, testing::ValuesIn(large_cases()),
                         [](const auto& entry) { return entry.param.name; });

// Loss options that the table leaves at their defaults.
TEST(LossTest, MatchesReference) {
  const auto backend = tested_backend();
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  for (const double smoothing : {0.0, 0.1, 0.5})
    for (const std::int64_t classes : {2, 17, 1000}) {
      Builder net("losses");
      const Value x = net.convolution(net.input({1, 3, 4, 3}), {.channels = classes});
      net.softmax_cross_entropy(net.global_average_pool(x),
                                {.label_smoothing = smoothing, .weight = 0.3, .label_offset = 12});
      net.softmax_cross_entropy(net.tanh(x), {.label_smoothing = smoothing, .weight = 1.7});
      Step step = build_step(std::make_shared<const Network>(std::move(net).build()), step_options(3));
      compare_all_tasks(*backend, step, kTolerance);
    }
}

// Far from zero, where sums of squares lose all digits; the mean itself is kept as a float.
TEST(BatchNormTest, KeepsItsDigitsFarFromZero) {
  const auto backend = tested_backend();
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  Builder net("far");
  net.softmax_cross_entropy(net.batch_norm(net.convolution(net.input({1, 5, 20, 20}), {.channels = 5})));
  Step built = build_step(std::make_shared<const Network>(std::move(net).build()), step_options(2));
  backend->annotate(built);
  const auto step = std::make_shared<const Step>(std::move(built));
  const StepState state = test_state(*step);
  ReferenceInterpreter reference(step);
  fill_inputs(*step, reference);
  reference.run_task(TaskId(0), state);
  const TensorId y = step->operands_of(TaskId(0)).back().tensor;
  std::vector<double> values = reference.get(y);
  for (double& value : values) value += 1000;
  reference.set(y, as_floats(values));
  TaskRunner runner(*backend, *step);
  const auto results = runner.run(TaskId(1), reference, state);
  reference.run_task(TaskId(1), state);
  for (const auto& [position, actual] : results)
    EXPECT_LE(relative_error(actual, reference.get_logical(step->operands_of(TaskId(1))[position].tensor)), 5e-5)
        << position;
}

// As one of two and of three ranks: rows and gradients in parts of larger tensors, sums over all ranks' samples.
TEST(BatchNormTest, MatchesReferenceOverRanks) {
  const auto backend = tested_backend(1);
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  for (const std::int64_t channels : {3, 37, 64})
    for (const std::int64_t ranks : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} channels on {} ranks", channels, ranks));
      Builder net("norms");
      Value x = net.convolution(net.input({1, 2, 17, 19}), {.channels = channels});
      x = net.batch_norm(net.tanh(x), {.epsilon = 1e-3, .momentum = 0.25});
      x = net.batch_norm(net.convolution(net.tanh(x), {.channels = channels}));
      net.softmax_cross_entropy(x);
      StepOptions options = step_options(4);
      options.ranks = {.count = ranks, .bucket = Bytes(1000), .parts = 2 * ranks};
      Step step = build_step(std::make_shared<const Network>(std::move(net).build()), options);
      compare_all_tasks(*backend, step, kTolerance,
                        [&](const Task& task) { return step.layer_kind(task) != LayerKind::batch_norm; });
    }
}

}  // namespace
}  // namespace tide::test
