// Small steps against the fastest schedule there is.
#include "support/exact.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/median.h"
#include "plan/timeline.h"
#include "planner/bound/lower_bound.h"
#include "planner/policy.h"
#include "step/build.h"
#include "support/on_device.h"
#include "support/random_network.h"

namespace tide {
namespace {

using testing_support::ExactSearch;

constexpr double kRounding = 1e-9;
constexpr std::size_t kMostStates = 5'000;

TEST(Exact, AutoIsCloseToTheOptimumOfSmallSteps) {
  std::vector<double> ratios, forced;
  int given_up = 0;
  for (std::uint32_t seed = 0; ratios.size() < 500; ++seed) {
    ASSERT_LT(seed, 5000U) << "too few of the graphs can be searched";
    testing_support::RandomNetwork random(seed);
    const Step step = build_step(std::make_shared<Network>(random.make(2 + static_cast<int>(seed % 4))),
                                 {.batch = 16, .fuse = seed % 2 == 0});
    Device device = generic_cpu();
    device.launch_seconds = 1e-8;
    device.link_bytes_per_second = 1e9 * std::pow(4.0, seed % 5);
    const RooflineModel cost(device);
    PlannerOptions options = test::on_device();
    options.memory[Tier::device] = Bytes(kAlignment);
    const std::int64_t floor = make_plan(find_policy("auto"), step, cost, options).floor[Tier::device].count();
    options.memory[Tier::device].reset();
    const std::int64_t peak = make_plan(find_policy("liveness"), step, cost, options).floor[Tier::device].count();
    if (peak <= floor || !ExactSearch::fits(step)) continue;
    options.memory[Tier::device] =
        Bytes((floor + (peak - floor) * static_cast<std::int64_t>(1 + seed % 7) / 8) / kAlignment * kAlignment);
    ExactSearch search(step, cost, *options.memory[Tier::device]);
    if (search.droppable() < 1 || search.droppable() > 10) continue;
    const double planned = simulate(*make_plan(find_policy("auto"), step, cost, options).plan, cost).seconds;
    const std::optional<double> shortest = search.shortest(planned, kMostStates);
    if (!shortest) {
      ++given_up;
      continue;
    }
    ratios.push_back(planned / *shortest);
    if (*shortest > 1.001 * ideal_seconds(step, cost)) forced.push_back(ratios.back());
    const LowerBound bound = lower_bound(step, cost, options);
    EXPECT_LE(bound.seconds, *shortest * (1 + kRounding)) << seed;
    for (const Policy& policy : policies()) {
      const PlanResult result = make_plan(policy, step, cost, options);
      if (!result.plan || result.plan->numerics != Numerics::identical) continue;
      EXPECT_GE(simulate(*result.plan, cost).seconds, *shortest * (1 - kRounding)) << policy.name << " " << seed;
    }
  }
  // Half of them cannot do without moving or recomputing; those alone, too.
  EXPECT_GE(forced.size(), 200U);
  EXPECT_LE(median(ratios), 1.05);
  EXPECT_LE(median(forced), 1.05);
  RecordProperty("given_up", given_up);
}

}  // namespace
}  // namespace tide
