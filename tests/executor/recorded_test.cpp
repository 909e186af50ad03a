// Steps on a device that runs by itself.
#include <gtest/gtest.h>

#include "executor/job.h"
#include "planner/policies/superneurons.h"
#include "support/on_device.h"
#include "support/random_network.h"
#include "support/recording_backend.h"

namespace tide {
namespace {

constexpr std::int64_t kRecordedBatch = 2;

TEST(RecordedStep, GivesTheBitsOfAStepRunOpByOp) {
  bool moved = false, recomputed = false;
  for (const std::uint32_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    SCOPED_TRACE(seed);
    const NetworkPtr network = testing_support::random_network(seed);
    const test::ParameterValues values = test::formula_values(*network);
    test::RecordingBackend recording(seed);
    const std::unique_ptr<Backend> plain = make_backend("reference");
    test::Job baseline(test::plan_for(network, *plain, "baseline", test::training_step(kRecordedBatch)), *plain);
    baseline.set_state(values);
    const double loss = baseline.run_steps(3);
    for (const char* const policy : {"baseline", "liveness", "offload", "superneurons"}) {
      SCOPED_TRACE(policy);
      PlannerOptions options = test::on_device();
      options.policy.set<SuperneuronsOptions>().cache = false;
      const PlanResult result =
          test::result_for(network, recording, policy, test::training_step(kRecordedBatch), options);
      const PlanSummary summary = summarize(*result.plan);
      test::Job job(*result.plan, recording, {.guard = true, .record = true});
      EXPECT_TRUE(job.executor().is_recorded());
      job.set_state(values);
      EXPECT_EQ(job.run_steps(3), loss);
      EXPECT_EQ(job.state_hash(), baseline.state_hash());
      EXPECT_EQ(job.executor().high_water(), summary.peak[Tier::device]);
      EXPECT_EQ(job.executor().copied_out(), summary.offloaded_bytes);
      EXPECT_EQ(job.executor().copied_in(), summary.prefetched_bytes);
      const Timeline& timeline = job.executor().timeline();
      ASSERT_EQ(timeline.spans.size(), result.plan->phases.front().ops.size());
      for (std::size_t i = 0; i < timeline.spans.size(); ++i)
        EXPECT_EQ(timeline.spans[i].start, static_cast<double>(i)) << "from the queue, op by op";
      moved = moved || !summary.offloaded_bytes.is_zero();
      recomputed = recomputed || summary.recomputed_tasks > 0;
    }
  }
  EXPECT_TRUE(moved);
  EXPECT_TRUE(recomputed);
}

// The next batch may be filled in while the device works: a started step has its own copy.
TEST(RecordedStep, InputsAreSentBeforeTheStepStarts) {
  const NetworkPtr network = testing_support::random_network(2);
  test::RecordingBackend backend(1);
  const Plan plan = test::plan_for(network, backend, "liveness", test::training_step(kRecordedBatch));
  test::Job together(plan, backend), ahead(plan, backend);
  for (test::Job* const job : {&together, &ahead}) job->set_state(test::formula_values(*network));
  together.run_steps(3);
  ahead.set_batch(0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ahead.executor().start(ahead.state(i, 0.01));
    ahead.set_batch(static_cast<std::int64_t>(i) + 1);
    ahead.executor().finish();
  }
  EXPECT_EQ(ahead.executor().metric().loss, together.executor().metric().loss);
  EXPECT_EQ(ahead.state_hash(), together.state_hash());
}

// A slowed-down link needs the host between the copies.
TEST(RecordedStep, RunsOpByOpBehindASlowedDownLink) {
  const NetworkPtr network = testing_support::random_network(1);
  test::RecordingBackend backend(1);
  const Plan plan = test::plan_for(network, backend, "liveness", test::training_step(kRecordedBatch));
  test::Job recorded(plan, backend), slowed(plan, backend, {.guard = true, .link_bytes_per_second = 1e9});
  EXPECT_FALSE(slowed.executor().is_recorded());
  for (test::Job* const job : {&recorded, &slowed}) job->set_state(test::formula_values(*network));
  recorded.run_steps(2);
  slowed.run_steps(2);
  EXPECT_EQ(slowed.state_hash(), recorded.state_hash());
}

}  // namespace
}  // namespace tide
