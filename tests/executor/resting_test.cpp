// Parameters and optimizer state that rest in host memory, executed: the same bits as with
// `baseline`, as many bytes moved as planned, at the smallest budget and above it.
#include "planner/search/resting.h"

#include <gtest/gtest.h>

#include "executor/zoo_job.h"
#include "planner/draft/resting_storages.h"
#include "planner/policies/superneurons.h"

namespace tide {
namespace {

using test::ZooCase;

class RestingParameters : public test::ZooJob {
 protected:
  void SetUp() override {
    set_up({.kind = OptimizerKind::adam});
    if (IsSkipped()) return;
    const Step step = build_step(network_, options_);
    for (const Storage& storage : step.storages) persistent_ += storage.persistent ? 1 : 0;
  }

  // Everything that persists rests, small things included.
  [[nodiscard]] PlanningContext all_resting() const {
    PlanningContext planner;
    planner.rest_in_host.emplace(persistent_, true);
    return planner;
  }

  std::size_t persistent_ = 0;
};

TEST_P(RestingParameters, EverythingAtTheFloorAndAbove) {
  PlanningContext planner = all_resting();
  planner.memory[Tier::device] = Bytes(kAlignment);
  const Bytes floor = plan("superneurons", planner).floor[Tier::device];
  for (const std::int64_t percent : {100, 120, 300}) {
    planner.memory[Tier::device] = Bytes(floor.count() * percent / 100);
    const Plan made = *plan("superneurons", planner).plan;
    EXPECT_LE(summarize(made).peak[Tier::device], *planner.memory[Tier::device]);
    expect_baseline(made, fmt::format("at {}% of the floor", percent), {.guard = percent == 100});
    expect_baseline(made, fmt::format("at {}%, over a link", percent), {.guard = false, .link_bytes_per_second = 2e9});
  }
}

TEST_P(RestingParameters, TechniquesAppliedAlways) {
  PlanningContext planner = all_resting();
  planner.policy.set<SuperneuronsOptions>().cache = false;
  for (const Recompute recompute : {Recompute::none, Recompute::memory}) {
    planner.policy.set<SuperneuronsOptions>().recompute = recompute;
    expect_baseline(*plan("superneurons", planner).plan, recompute_name(recompute));
  }
  expect_baseline(*plan("offload", planner).plan, "offload");
}

// Every second one, so that both kinds of place meet in one task.
TEST_P(RestingParameters, SomeOfIt) {
  PlanningContext planner = all_resting();
  for (std::size_t s = 0; s < persistent_; s += 2) (*planner.rest_in_host)[s] = false;
  planner.memory[Tier::device] = Bytes(kAlignment);
  planner.memory[Tier::device] = plan("superneurons", planner).floor[Tier::device];
  const Plan made = *plan("superneurons", planner).plan;
  const std::vector<bool> rested = rest_in_host(made);
  EXPECT_NE(std::count(rested.begin(), rested.end(), true), 0);
  EXPECT_NE(std::count(rested.begin(), rested.end(), false), 0);
  expect_baseline(made, "every second one", {.guard = true});
}

INSTANTIATE_TEST_SUITE_P(Zoo, RestingParameters,
                         testing::Values(ZooCase{"digits", {1, 1, 8, 8}, 3, Rules::minimal, true},
                                         ZooCase{"digits@11", {1, 1, 8, 8}, 7, Rules::superneurons, true},
                                         ZooCase{"lstm:2,16,4@11", {1, 24, 1, 1}, 5, Rules::minimal, true}),
                         test::zoo_case_name);

}  // namespace
}  // namespace tide
