// The policies that recompute by mirror counts, and vDNN's, executed: the weights after some steps
// are baseline's bit for bit, and the memory taken is the planned peak.
#include <gtest/gtest.h>

#include "executor/zoo_job.h"
#include "planner/policies/sublinear.h"
#include "support/on_device.h"

namespace tide {
namespace {

using Recomputing = test::ZooJob;

TEST_P(Recomputing, ByAnyPolicy) {
  for (const char* policy : {"drop-cheap", "sublinear", "recursive"}) {
    const PlanResult smallest = plan(policy, {});
    expect_baseline(*smallest.plan, policy);
    const Bytes low = smallest.floor[Tier::device], high = plan("liveness", {}).floor[Tier::device];
    if (high < low) continue;
    PlannerOptions planner = test::on_device();
    planner.memory[Tier::device] = Bytes((low.count() + (high - low).count() / 2) / kAlignment * kAlignment);
    const Plan made = *plan(policy, planner).plan;
    EXPECT_LE(summarize(made).peak[Tier::device], *planner.memory[Tier::device]);
    expect_baseline(made, fmt::format("{} within a budget", policy));
  }
  // And by counts of the user.
  PlannerOptions planner = test::on_device();
  const Step step = build_step(network_, options_);
  for (std::size_t l = 1; l < step.layer_names.size(); ++l)
    planner.policy.set<SublinearOptions>().mirror.push_back(
        {step.layer_names[l], static_cast<std::int32_t>(l * 7 % 4)});
  const Plan made = *plan("sublinear", planner).plan;
  EXPECT_GT(summarize(made).recomputed_tasks, 0);
  expect_baseline(made, "counts of the user");
}

TEST_P(Recomputing, VdnnOverASlowLink) {
  for (const char* policy : {"vdnn-conv", "vdnn-all"}) {
    const Plan made = *plan(policy, {}).plan;
    expect_baseline(made, policy, {.guard = false, .link_bytes_per_second = 2e9});
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Recomputing, test::few_zoo_cases(), test::zoo_case_name);
INSTANTIATE_TEST_SUITE_P(Slow, Recomputing, test::zoo_cases(), test::zoo_case_name);

}  // namespace
}  // namespace tide
