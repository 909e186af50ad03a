// A replay must give the very bits that its forward task gave, dropout's mask and batch
// norm's statistics included; and results must not depend on the run.
#include "backend/network_cases.h"
#include "backend/task_runner.h"

namespace tide::test {
namespace {

class ReplayTest : public testing::TestWithParam<NetworkCase> {
 protected:
  static void check(Backend& backend) {
    Step built = build_step(GetParam().network(), step_options(GetParam().batch));
    backend.annotate(built);
    const auto step = std::make_shared<const Step>(std::move(built));
    const StepState state = test_state(*step);
    ReferenceInterpreter values(step);  // holds what the backend made
    fill_inputs(*step, values);
    TaskRunner runner(backend, *step), shifted(backend, *step, 5);
    for (std::size_t t = 0; t < step->ordered_tasks; ++t) {
      SCOPED_TRACE(task_name(*step, TaskId(t)));
      const auto results = runner.run(TaskId(t), values, state);
      EXPECT_EQ(shifted.run(TaskId(t), values, state), results) << "differs from run to run";
      for (const auto& [position, numbers] : results)
        values.set_logical(step->operands_of(TaskId(t))[position].tensor, numbers);
      const TaskId replay = step->replay_of[t];
      if (!replay.valid()) continue;
      for (const auto& [position, numbers] : runner.run(replay, values, state))
        EXPECT_EQ(numbers, values.get_logical(step->operands_of(replay)[position].tensor)) << "replay differs";
    }
  }
};

TEST_P(ReplayTest, OfTestedBackendGivesTheSameBits) {
  for (const int threads : {1, 3}) {
    const auto backend = tested_backend(threads);
    if (backend == nullptr) GTEST_SKIP() << no_backend();
    check(*backend);
  }
}

TEST_P(ReplayTest, OfReferenceGivesTheSameBits) { check(*make_backend("reference")); }

INSTANTIATE_TEST_SUITE_P(Cases, ReplayTest, testing::ValuesIn(all_cases()),
                         [](const auto& entry) { return entry.param.name; });
INSTANTIATE_TEST_SUITE_P(LargeCases, ReplayTest, testing::ValuesIn(large_cases()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace tide::test
