// What the SuperNeurons policies promise, on random graphs: chains, fans, joins, nested
// ones, shared weights. Every plan here has passed the checker (make_plan).
#include "planner/policies/superneurons.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/summary.h"
#include "planner/draft/facts.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "planner/runtime/runtime.h"
#include "step/build.h"
#include "support/on_device.h"
#include "support/random_network.h"

namespace tide {
namespace {

constexpr std::uint32_t kNetworks = 60;

class Policies : public testing::TestWithParam<std::uint32_t> {
 protected:
  [[nodiscard]] Step step(Rules rules) const {
    testing_support::RandomNetwork random(GetParam());
    const int layers = 4 + static_cast<int>(GetParam() % 29);
    return build_step(std::make_shared<Network>(random.make(layers)),
                      {.batch = 1 + GetParam() % 5, .rules = rules, .training = true, .optimizer = {}});
  }
  [[nodiscard]] PlanResult plan(std::string_view policy, Rules rules, const PlannerOptions& options) const {
    return make_plan(find_policy(policy), step(rules), RooflineModel(generic_cpu()), options);
  }
  [[nodiscard]] Bytes liveness_peak(Rules rules) const {
    return summarize(*plan("liveness", rules, {}).plan).peak[Tier::device];
  }

  static constexpr std::array kRules{Rules::minimal, Rules::superneurons};
};

Bytes moved(const PlanSummary& summary) { return summary.offloaded_bytes + summary.prefetched_bytes; }

TEST_P(Policies, FloorIsReachedAndNoUnitLess) {
  for (const Rules rules : kRules) {
    for (const char* policy : {"offload", "superneurons"}) {
      for (const bool cache : {true, false}) {
        PlannerOptions options = test::on_device();
        options.policy.set<SuperneuronsOptions>().cache = cache;
        options.memory[Tier::device] = Bytes(kAlignment);
        const Bytes floor = plan(policy, rules, options).floor[Tier::device];
        options.memory[Tier::device] = floor;
        const PlanResult at = plan(policy, rules, options);
        ASSERT_TRUE(at.plan) << policy << " at its floor of " << floor.count();
        EXPECT_EQ(at.floor[Tier::device], floor);
        EXPECT_LE(summarize(*at.plan).peak[Tier::device], floor);
        options.memory[Tier::device] = floor - Bytes(kAlignment);
        const PlanResult below = plan(policy, rules, options);
        EXPECT_FALSE(below.plan) << policy << " below its floor of " << floor.count();
        EXPECT_EQ(below.floor[Tier::device], floor);
        EXPECT_FALSE(below.bottleneck_task.empty());
      }
    }
  }
}

// The paper's peak = max(l_i), as it is true: everything but the task at hand may leave.
TEST_P(Policies, FloorWithTheCacheIsTheLargestTask) {
  for (const Rules rules : kRules) {
    PlannerOptions options = test::on_device();
    options.memory[Tier::device] = Bytes(kAlignment);
    // By hand, from the step as it is planned: in-place results share storages.
    PlannerOptions unlimited = test::on_device();
    const PlanResult result = plan("superneurons", rules, unlimited);
    const Step& planned = *result.plan->phases.front().step;
    Bytes largest, persistent, inputs;
    for (const Storage& storage : planned.storages) {
      if (storage.persistent)
        persistent += storage.bytes.aligned();
      else if (storage.entry.valid())
        inputs += storage.bytes.aligned();
    }
    for (std::size_t t = 0; t < planned.ordered_tasks; ++t) {
      Bytes bytes = planned.algorithms_of(TaskId(t)).front().workspace.aligned();
      std::set<StorageId> storages;
      for (const Operand& operand : planned.operands_of(TaskId(t)))
        storages.insert(planned.tensor(operand.tensor).storage);
      for (const StorageId id : storages)
        if (!planned.storage(id).persistent) bytes += planned.storage(id).bytes.aligned();
      largest = std::max(largest, bytes);
    }
    EXPECT_EQ(plan("superneurons", rules, options).floor[Tier::device], persistent + std::max(largest, inputs));
  }
}

TEST_P(Policies, NeverAboveTheBudget) {
  for (const Rules rules : kRules) {
    const Bytes high = liveness_peak(rules);
    for (const Recompute recompute : {Recompute::none, Recompute::speed, Recompute::memory, Recompute::cost_aware}) {
      PlannerOptions options = test::on_device();
      options.policy.set<SuperneuronsOptions>().recompute = recompute;
      options.policy.set<SuperneuronsOptions>().replacement =
          static_cast<Replacement>((GetParam() + static_cast<std::uint32_t>(recompute)) % 4);
      options.memory[Tier::device] = Bytes(kAlignment);
      const Bytes low = plan("superneurons", rules, options).floor[Tier::device];
      for (const int part : {1, 3, 6}) {
        const std::int64_t between = low.count() + (high.count() - low.count()) / 8 * part;
        options.memory[Tier::device] = Bytes(between / kAlignment * kAlignment);
        if (*options.memory[Tier::device] < low) continue;
        const PlanResult result = plan("superneurons", rules, options);
        ASSERT_TRUE(result.plan);
        const PlanSummary summary = summarize(*result.plan);
        EXPECT_LE(summary.peak[Tier::device], *options.memory[Tier::device]);
        if (recompute == Recompute::none) {
          EXPECT_EQ(summary.recomputed_tasks, 0);
        }
      }
    }
  }
}

TEST_P(Policies, EnoughMemoryMeansNothingMoves) {
  for (const Rules rules : kRules) {
    PlannerOptions options = test::on_device();
    for (const std::optional<Bytes> memory : {std::optional<Bytes>(), std::optional(liveness_peak(rules))}) {
      options.memory[Tier::device] = memory;
      const PlanSummary summary = summarize(*plan("superneurons", rules, options).plan);
      EXPECT_TRUE(moved(summary).is_zero());
      EXPECT_EQ(summary.recomputed_tasks, 0);
    }
  }
}

TEST_P(Policies, CostAwareIsBoundedByMemoryCentric) {
  for (const Rules rules : kRules) {
    PlannerOptions options = test::on_device();
    options.policy.set<SuperneuronsOptions>().cache = false;
    const auto summary = [&](Recompute recompute) {
      options.policy.set<SuperneuronsOptions>().recompute = recompute;
      const PlanResult result = plan("superneurons", rules, options);
      PlanSummary made = summarize(*result.plan);
      // The strategies differ in the backward pass only.
      made.peak_data_bytes = Bytes();
      for (const StepUsage& usage : made.steps)
        if (usage.step > result.plan->phases.front().step->layer_steps)
          made.peak_data_bytes = std::max(made.peak_data_bytes, usage.live_data_bytes);
      return made;
    };
    const PlanSummary memory = summary(Recompute::memory), speed = summary(Recompute::speed),
                      aware = summary(Recompute::cost_aware);
    EXPECT_LE(aware.peak_data_bytes, memory.peak_data_bytes);
    EXPECT_LE(aware.recomputed_tasks, memory.recomputed_tasks);
    EXPECT_LE(speed.recomputed_tasks, memory.recomputed_tasks);
    EXPECT_GE(aware.recomputed_tasks, speed.recomputed_tasks);
  }
}

TEST_P(Policies, CacheNeverMovesMore) {
  for (const Rules rules : kRules) {
    const Bytes high = liveness_peak(rules);
    for (const Replacement replacement : {Replacement::lru, Replacement::next_use}) {
      PlannerOptions on = test::on_device();
      on.policy.set<SuperneuronsOptions>().replacement = replacement;
      PlannerOptions off = on;
      off.policy.set<SuperneuronsOptions>().cache = false;
      off.memory[Tier::device] = Bytes(kAlignment);
      const Bytes low = plan("superneurons", rules, off).floor[Tier::device];
      for (const int part : {0, 2, 5, 8}) {
        const std::int64_t between = low.count() + std::max<std::int64_t>(high.count() - low.count(), 0) / 8 * part;
        on.memory[Tier::device] = off.memory[Tier::device] = Bytes(between / kAlignment * kAlignment);
        const PlanResult without = plan("superneurons", rules, off);
        if (!without.plan) continue;
        const PlanResult with = plan("superneurons", rules, on);
        ASSERT_TRUE(with.plan);
        EXPECT_LE(moved(summarize(*with.plan)), moved(summarize(*without.plan)));
      }
    }
  }
}

TEST_P(Policies, HostBudgetIsExact) {
  PlannerOptions options = test::on_device();
  options.memory[Tier::device] = Bytes(kAlignment);
  options.memory[Tier::device] = plan("superneurons", Rules::minimal, options).floor[Tier::device];
  const PlanResult result = plan("superneurons", Rules::minimal, options);
  const Bytes host = summarize(*result.plan).peak[Tier::host];
  EXPECT_EQ(result.floor[Tier::host], host);
  if (host.is_zero()) return;
  options.memory[Tier::host] = host;
  EXPECT_TRUE(plan("superneurons", Rules::minimal, options).plan);
}

INSTANTIATE_TEST_SUITE_P(Random, Policies, testing::Range(0U, kNetworks));

}  // namespace
}  // namespace tide
