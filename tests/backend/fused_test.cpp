// Steps with fused layers and updates of several parameters at once, on the tested backend
// against the double-precision reference; and that nothing is left to be fused.
#include "backend/compare_tasks.h"
#include "backend/network_cases.h"

namespace tide::test {
namespace {

StepOptions fused_options(std::int64_t batch, bool training = true) {
  StepOptions options = step_options(batch, Rules::minimal, training);
  options.fuse = true;
  return options;
}

class FusedTest : public testing::TestWithParam<NetworkCase> {
 protected:
  void SetUp() override {
    backend_ = tested_backend(2);
    if (backend_ == nullptr) GTEST_SKIP() << no_backend();
  }
  std::shared_ptr<Backend> backend_;
};

TEST_P(FusedTest, MatchesReference) {
  Step step = build_step(GetParam().network(), fused_options(GetParam().batch));
  compare_all_tasks(*backend_, step, kTolerance, is_first_sum);
}

TEST_P(FusedTest, MatchesReferenceForwardOnly) {
  Step step = build_step(GetParam().network(), fused_options(GetParam().batch, false));
  compare_all_tasks(*backend_, step, kTolerance);
}

TEST_P(FusedTest, ReplayGivesTheSameBits) {
  Step built = build_step(GetParam().network(), fused_options(GetParam().batch));
  backend_->annotate(built);
  const auto step = std::make_shared<const Step>(std::move(built));
  expect_equal_replays(*backend_, step);
}

INSTANTIATE_TEST_SUITE_P(Cases, FusedTest, testing::ValuesIn(fused_cases()),
                         [](const auto& entry) { return entry.param.name; });

class FusedReferenceTest : public testing::TestWithParam<NetworkCase> {};

TEST_P(FusedReferenceTest, GivesTheUpdatesOfThePlainStep) {
  const auto run = [&](const StepOptions& options) {
    const auto step = std::make_shared<const Step>(build_step(GetParam().network(), options));
    ReferenceInterpreter interpreter(step);
    fill_inputs(*step, interpreter);
    interpreter.run(test_state(*step));
    std::map<std::size_t, std::vector<double>> updated;  // by parameter
    for (const Storage& storage : step->storages)
      if (storage.tensor_class == TensorClass::parameter)
        updated[step->tensor(storage.exit).parameter.index()] = interpreter.get(storage.exit);
    return updated;
  };
  const auto plain = run(step_options(GetParam().batch)), fused = run(fused_options(GetParam().batch));
  ASSERT_EQ(plain.size(), fused.size());
  for (const auto& [parameter, values] : plain) EXPECT_LE(relative_error(fused.at(parameter), values), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Cases, FusedReferenceTest, testing::ValuesIn(fused_cases()),
                         [](const auto& entry) { return entry.param.name; });

TEST(FusedStepTest, HasNoLayersLeftToFuse) {
  for (const NetworkCase& entry : fused_cases()) {
    const Step plain = build_step(entry.network(), step_options(entry.batch));
    const Step fused = build_step(entry.network(), fused_options(entry.batch));
    EXPECT_LT(fused.ordered_tasks, plain.ordered_tasks) << entry.name;
  }
}

// A trained batch norm over frozen layers and beside them, and a frozen one: some of the gradients
// are not wanted.
TEST(FusedStepTest, MatchesReferenceWhereGradientsAreNotWanted) {
  const auto backend = tested_backend(2);
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  for (const bool frozen_below : {false, true})
    for (const bool frozen_norm : {false, true})
      for (const bool two : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", frozen_below, frozen_norm, two));
        Builder net("frozen");
        const Value x = net.input({1, 3, 5, 4});
        const Value frozen = net.freeze().convolution(x, {.channels = 12});
        const Value trained = net.freeze(false).convolution(x, {.channels = 12});
        const Value normalized = net.freeze(frozen_norm).batch_norm(frozen_below ? frozen : trained);
        net.freeze(false);
        Value y = net.relu(net.add({normalized, frozen_below ? trained : frozen}));
        if (two) y = net.add({net.tanh(y), net.sigmoid(y)});
        net.softmax_cross_entropy(y);
        Step step = build_step(std::make_shared<const Network>(std::move(net).build()), fused_options(3));
        compare_all_tasks(*backend, step, kTolerance, is_first_sum);
      }
}

TEST(FusedStepTest, UpdatesManyParametersAtOnce) {
  const auto backend = tested_backend(2);
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::nesterov,
                                   OptimizerKind::adam, OptimizerKind::adamw})
    for (const double clip_norm : {0.0, 0.05}) {
      Builder net("many");
      Value x = net.input({1, 3, 2, 2});
      for (std::int64_t i = 0; i < 40; ++i) x = net.tanh(net.convolution(x, {.channels = 1 + i % 9}));
      net.softmax_cross_entropy(net.fully_connected(x, {.channels = 2001}));
      StepOptions options = fused_options(2);
      options.optimizer.kind = kind;
      options.optimizer.weight_decay = 0.01;
      options.optimizer.clip_norm = clip_norm;
      Step step = build_step(std::make_shared<const Network>(std::move(net).build()), options);
      // 64 together, the rest together, and the last weights, which are large, by themselves.
      const auto is_update = [](const Task& task) { return task.kind == TaskKind::update; };
      EXPECT_EQ(std::count_if(step.tasks.begin(), step.tasks.end(), is_update), 3);
      compare_all_tasks(*backend, step, kTolerance, [](const Task& task) { return task.kind != TaskKind::update; });
    }
}

}  // namespace
}  // namespace tide::test
