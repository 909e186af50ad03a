// The policies that move and recompute, executed: copies run on their own threads over a
// throttled link, and yet not a bit of the weights differs from `baseline`'s, as many bytes
// move as the plan says, and the memory taken is the planned peak.
#include <gtest/gtest.h>

#include "executor/zoo_job.h"
#include "planner/policies/superneurons.h"
#include "support/on_device.h"

namespace tide {
namespace {

Bytes disk_bytes(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  Bytes top;
  for (const Residency& r : phase.residencies)
    if (r.tier == Tier::disk) top = std::max(top, r.address + aligned_bytes(phase, r));
  return top;
}

class ExecutedPolicies : public test::ZooJob {
 protected:
  void expect_baseline(const Plan& plan, double link, std::string_view what) {
    const Bytes disk = disk_bytes(plan);
    ZooJob::expect_baseline(plan, fmt::format("{} at {} GB/s", what, link / 1e9),
                            {.guard = false, .link_bytes_per_second = link},
                            disk.is_zero() ? nullptr : std::make_unique<SpillFile>("", disk));
  }
};

TEST_P(ExecutedPolicies, TechniquesAppliedAlways) {
  PlannerOptions planner = test::on_device();
  planner.policy.set<SuperneuronsOptions>().cache = false;
  expect_baseline(*plan("offload", planner).plan, 4e9, "offload");
  for (const Recompute recompute : {Recompute::none, Recompute::speed, Recompute::memory, Recompute::cost_aware}) {
    planner.policy.set<SuperneuronsOptions>().recompute = recompute;
    expect_baseline(*plan("superneurons", planner).plan, 4e9, recompute_name(recompute));
  }
}

TEST_P(ExecutedPolicies, WithinABudget) {
  PlannerOptions planner = test::on_device();
  const Bytes high = summarize(*plan("liveness", planner).plan).peak[Tier::device];
  planner.memory[Tier::device] = Bytes(kAlignment);
  const Bytes low = plan("superneurons", planner).floor[Tier::device];
  const double links[] = {1e9, 2e9, 4e9};
  std::size_t turn = 0;
  for (const std::int64_t percent : {0, 25, 75}) {
    const std::int64_t between = low.count() + (high - low).count() / 100 * percent;
    planner.memory[Tier::device] = Bytes(between / kAlignment * kAlignment);
    const Plan made = *plan("superneurons", planner).plan;
    EXPECT_LE(summarize(made).peak[Tier::device], *planner.memory[Tier::device]);
    expect_baseline(made, links[turn++ % 3], fmt::format("superneurons at {} bytes", between));
  }
  // At the floor with hardly any host memory: the rest goes to disk.
  planner.memory[Tier::device] = low;
  planner.memory[Tier::disk] = Bytes(std::int64_t{1} << 40);
  planner.memory[Tier::host] = Bytes(kAlignment);
  const PlanResult refused = plan("superneurons", planner);
  if (refused.plan) return;  // nothing had to leave
  planner.memory[Tier::host] = refused.floor[Tier::host];
  const PlanResult spilled = plan("superneurons", planner);
  ASSERT_TRUE(spilled.plan);
  EXPECT_FALSE(disk_bytes(*spilled.plan).is_zero());
  expect_baseline(*spilled.plan, 4e9, "superneurons with a disk");
}

INSTANTIATE_TEST_SUITE_P(Zoo, ExecutedPolicies, test::zoo_cases(), test::zoo_case_name);

}  // namespace
}  // namespace tide
