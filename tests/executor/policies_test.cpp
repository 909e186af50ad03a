// The policies that move and recompute, executed: copies run on their own threads over a
// throttled link, and yet not a bit of the weights differs from `baseline`'s, as many bytes
// move as the plan says, and the memory taken is the planned peak.
#include <gtest/gtest.h>

#include "executor/job.h"
#include "executor/zoo_cases.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using test::ZooCase;

Bytes disk_bytes(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  Bytes top;
  for (const Residency& r : phase.residencies)
    if (r.tier == Tier::disk) top = std::max(top, r.address + aligned_bytes(phase, r));
  return top;
}

class ExecutedPolicies : public testing::TestWithParam<ZooCase> {
 protected:
  static constexpr std::uint64_t kSteps = 2;

  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    if (!GetParam().small) GTEST_SKIP() << "takes minutes under AddressSanitizer; the small networks take the same paths";
#endif
    backend_ = test::cpu_backend();
    if (!backend_ && !GetParam().small) GTEST_SKIP() << "too slow for the reference backend";
    if (!backend_) backend_ = make_backend("reference");
    network_ = test::shared_network(make_model(GetParam().model, GetParam().sample));
    values_ = test::formula_values(*network_);
    options_ = test::training_step(GetParam().batch);
    options_.rules = GetParam().rules;
    test::Job job(test::plan_for(network_, *backend_, "baseline", options_), *backend_, {.guard = false});
    job.set_state(values_);
    job.run_steps(kSteps);
    baseline_ = job.state_hash();
  }

  [[nodiscard]] PlanResult plan(std::string_view policy, const PlannerOptions& planner) const {
    return test::result_for(network_, *backend_, policy, options_, planner);
  }

  void expect_baseline(const Plan& plan, double link, std::string_view what) {
    SCOPED_TRACE(fmt::format("{} at {} GB/s", what, link / 1e9));
    const Bytes disk = disk_bytes(plan);
    test::Job job(plan, *backend_, {.guard = false, .link_bytes_per_second = link},
                  disk.is_zero() ? nullptr : std::make_unique<SpillFile>("", disk));
    job.set_state(values_);
    job.run_steps(kSteps);
    EXPECT_EQ(job.state_hash(), baseline_);
    const PlanSummary summary = summarize(job.plan());
    EXPECT_EQ(job.executor().copied_out(), summary.offloaded_bytes);
    EXPECT_EQ(job.executor().copied_in(), summary.prefetched_bytes);
    EXPECT_EQ(job.executor().high_water(), summary.peak_bytes);
  }

  std::unique_ptr<Backend> backend_;
  NetworkPtr network_;
  test::ParameterValues values_;
  StepOptions options_;
  std::uint64_t baseline_ = 0;
};

TEST_P(ExecutedPolicies, TechniquesAppliedAlways) {
  PlannerOptions planner;
  planner.cache = false;
  expect_baseline(*plan("offload", planner).plan, 4e9, "offload");
  for (const Recompute recompute : {Recompute::none, Recompute::speed, Recompute::memory, Recompute::cost_aware}) {
    planner.recompute = recompute;
    expect_baseline(*plan("superneurons", planner).plan, 4e9, recompute_name(recompute));
  }
}

TEST_P(ExecutedPolicies, WithinABudget) {
  PlannerOptions planner;
  const Bytes high = summarize(*plan("liveness", planner).plan).peak_bytes;
  planner.memory = Bytes(kAlignment);
  const Bytes low = plan("superneurons", planner).floor;
  const double links[] = {1e9, 2e9, 4e9};
  std::size_t turn = 0;
  for (const std::int64_t percent : {0, 25, 75}) {
    const std::int64_t between = low.count() + (high - low).count() / 100 * percent;
    planner.memory = Bytes(between / kAlignment * kAlignment);
    const Plan made = *plan("superneurons", planner).plan;
    EXPECT_LE(summarize(made).peak_bytes, *planner.memory);
    expect_baseline(made, links[turn++ % 3], fmt::format("superneurons at {} bytes", between));
  }
  // At the floor with hardly any host memory: the rest goes to disk.
  planner.memory = low;
  planner.disk_memory = Bytes(std::int64_t{1} << 40);
  planner.host_memory = Bytes(kAlignment);
  const PlanResult refused = plan("superneurons", planner);
  if (refused.plan) return;  // nothing had to leave
  planner.host_memory = refused.host_floor;
  const PlanResult spilled = plan("superneurons", planner);
  ASSERT_TRUE(spilled.plan);
  EXPECT_FALSE(disk_bytes(*spilled.plan).is_zero());
  expect_baseline(*spilled.plan, 4e9, "superneurons with a disk");
}

INSTANTIATE_TEST_SUITE_P(Zoo, ExecutedPolicies, test::zoo_cases(), test::zoo_case_name);

}  // namespace
}  // namespace tide
