// Triggers as measured steps ask for them, by timelines written by hand.
#include "planner/ranks/corrections.h"

#include <gtest/gtest.h>

#include <map>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "network/builder.h"
#include "planner/policy.h"
#include "planner/vdnn/turns.h"
#include "step/build.h"
#include "support/on_device.h"

namespace tide {
namespace {

constexpr std::size_t kConvolutions = 6;

// Convolutions in a row, planned with triggers.
struct Swapped {
  explicit Swapped(const std::vector<std::int32_t>& early) {
    Builder net("row");
    Value x = net.input({1, 3, 16, 16}, "in");
    for (std::size_t i = 0; i < kConvolutions; ++i)
      x = net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, fmt::format("conv{}", i));
    net.softmax_cross_entropy(net.fully_connected(x, {.channels = 10}, "fc"), {}, "softmax");
    StepOptions options;
    options.batch = 8;
    step = build_step(std::make_shared<const Network>(std::move(net).build()), options);
    annotate_for(step, find_device("p100").rates());
    triggers.early = early;
    plan = *made(triggers).plan;
  }
  [[nodiscard]] PlanResult made(const TriggerOptions& with, const std::optional<Bytes>& budget = {}) const {
    PlannerOptions options = test::on_device(budget);
    options.policy.set<TriggerOptions>() = with;
    return make_plan(find_policy("vdnn-conv"), step, DeviceModel(find_device("p100").rates()), options);
  }
  [[nodiscard]] const Phase& phase() const { return plan.phases.front(); }

  // Every run takes a second, copies what they are given, none where nothing is said.
  [[nodiscard]] Timeline played(const std::map<std::size_t, double>& copies) const {
    Timeline timeline;
    PerLane<double> free{0};
    for (std::size_t i = 0; i < phase().ops.size(); ++i) {
      const Op& op = phase().ops[i];
      double start = free[op.lane];
      for (const std::int32_t wait : op.waits)
        start = std::max(start, timeline.spans[static_cast<std::size_t>(wait)].end);
      const double seconds = op.is_run() ? 1 : copies.contains(i) ? copies.at(i) : 0;
      timeline.spans.push_back({static_cast<std::int32_t>(i), start, start + seconds});
      free[op.lane] = start + seconds;
      timeline.seconds = std::max(timeline.seconds, start + seconds);
    }
    return timeline;
  }
  // Of the k-th that left.
  [[nodiscard]] std::size_t copy_in(std::size_t k) const { return swap_in_timings(plan, played({})).at(k).copy; }
  [[nodiscard]] std::vector<std::int32_t> corrected(const Timeline& timeline) const {
    return *corrected_triggers(plan, timeline, triggers).early;
  }

  Step step;
  TriggerOptions triggers;
  Plan plan;
};

std::size_t swaps() { return swap_in_timings(Swapped({0}).plan, Swapped({0}).played({})).size(); }

TEST(Corrections, WhatIsInTimeIsLeftAlone) {
  const Swapped late(std::vector<std::int32_t>(swaps(), 0));
  ASSERT_GE(swaps(), 4U);
  EXPECT_EQ(late.corrected(late.played({})), *late.triggers.early);
}

TEST(Corrections, AnOpThatWaitedHasItsTriggerEarlier) {
  const Swapped late(std::vector<std::int32_t>(swaps(), 0));
  const Turns turns(late.step);
  const std::size_t k = 2;
  // A copy as long as a second and a bit: so many layers earlier as hold it.
  for (const double seconds : {0.5, 1.5, 2.5, 4.5}) {
    const Timeline timeline = late.played({{late.copy_in(k), seconds}});
    const SwapInTiming timing = swap_in_timings(late.plan, timeline)[k];
    EXPECT_DOUBLE_EQ(timing.waited, seconds);
    EXPECT_TRUE(timing.at_once);
    std::vector<std::int32_t> expected = *late.triggers.early;
    const std::size_t needed = turns.of(late.phase().ops[timing.needed_by].run().task);
    double held = 0;
    for (std::size_t turn = needed; held < seconds; ++expected[k]) {
      --turn;
      held += static_cast<double>(turns.end_task(turn) - turns.first_task(turn));  // a second each
    }
    EXPECT_GE(expected[k], 1);
    EXPECT_EQ(late.corrected(timeline), expected) << seconds;
  }
}

TEST(Corrections, ACopyBehindAnotherIsNotHelpedByItsTrigger) {
  // Both have the same trigger; the lane is busy with the first.
  std::vector<std::int32_t> early(swaps(), 0);
  const std::size_t last = swaps() - 1;
  early[last] = 0;
  early[last - 1] = 1;
  const Swapped both(early);
  const std::size_t first = std::min(both.copy_in(last), both.copy_in(last - 1));
  const std::size_t second = std::max(both.copy_in(last), both.copy_in(last - 1));
  const Timeline timeline = both.played({{first, 5}, {second, 0.5}});
  const std::vector<SwapInTiming> timings = swap_in_timings(both.plan, timeline);
  const std::size_t k = timings[last].copy == second ? last : last - 1;
  EXPECT_FALSE(timings[k].at_once);
  EXPECT_EQ(both.corrected(timeline)[k], early[k]);
}

TEST(Corrections, WhatCameFarTooEarlyHasItsTriggerLater) {
  std::vector<std::int32_t> early(swaps(), 0);
  early[1] = 6;
  const Swapped plan(early);
  const std::vector<SwapInTiming> timings = swap_in_timings(plan.plan, plan.played({}));
  EXPECT_GT(timings[1].spare, 4);
  EXPECT_EQ(timings[1].waited, 0);
  const std::vector<std::int32_t> corrected = plan.corrected(plan.played({}));
  EXPECT_LT(corrected[1], 6);
  EXPECT_GT(corrected[1], 0);  // half of the time is kept
  for (std::size_t k = 0; k < corrected.size(); ++k) EXPECT_TRUE(k == 1 || corrected[k] == 0) << k;
}

TEST(Corrections, WithoutATriggerThereIsNothingToMove) {
  std::vector<std::int32_t> early(swaps(), kNoTrigger);
  const Swapped plan(early);
  EXPECT_EQ(plan.corrected(plan.played({})), early);
}

TEST(Corrections, AreMadeAsFarAsMemoryAllows) {
  const Swapped late(std::vector<std::int32_t>(swaps(), 0));
  const TriggerOptions wanted{.early = std::vector<std::int32_t>(swaps(), 8)};
  const Bytes least = late.made(late.triggers).floor[Tier::device], most = late.made(wanted).floor[Tier::device];
  ASSERT_LT(least, most);
  const auto within_bytes = [&](Bytes budget) {
    return apply_corrections([&](const TriggerOptions& triggers) { return late.made(triggers, budget); }, late.triggers,
                             wanted);
  };
  EXPECT_EQ(*within_bytes(most).triggers.early, *wanted.early);
  const TriggersFound some = within_bytes(Bytes((least.count() + most.count()) / 2));
  ASSERT_TRUE(some.result.plan);
  EXPECT_NE(*some.triggers.early, *wanted.early);
  EXPECT_NE(*some.triggers.early, *late.triggers.early);
  EXPECT_FALSE(within_bytes(Bytes(1024)).result.plan);
}

}  // namespace
}  // namespace tide
