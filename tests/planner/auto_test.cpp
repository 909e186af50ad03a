// The joint planner and the policy auto over it. Every plan here has passed the checker.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/bound/lower_bound.h"
#include "planner/draft/max_tree.h"
#include "planner/joint/segments.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "planner/search/fusing.h"
#include "planner/search/search.h"
#include "step/build.h"
#include "support/on_device.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

TEST(MaxTree, FindsThePeakOfRangesAdded) {
  std::mt19937 random(7);
  for (const std::size_t size : {1U, 2U, 7U, 64U, 201U}) {
    std::vector<std::int64_t> plain(size);
    for (auto& value : plain) value = static_cast<std::int64_t>(random() % 100);
    MaxTree tree(plain);
    for (int round = 0; round < 200; ++round) {
      const auto peak = std::max_element(plain.begin(), plain.end());
      ASSERT_EQ(tree.peak(), *peak);
      ASSERT_EQ(tree.peak_at(), peak - plain.begin());
      const std::size_t a = random() % (size + 1), b = random() % (size + 1);
      const std::int64_t bytes = static_cast<std::int64_t>(random() % 200) - 100;
      tree.add(a, b, bytes);  // an empty range where a >= b
      for (std::size_t i = a; i < b; ++i) plain[i] += bytes;
      const std::int64_t limit = static_cast<std::int64_t>(random() % 200) - 50;
      std::size_t first = a, behind = b;
      while (first < b && plain[first] <= limit) ++first;
      while (behind > a && plain[behind - 1] <= limit) --behind;
      ASSERT_EQ(tree.first_above(a, b, limit), a < b ? first : b);
      ASSERT_EQ(tree.behind_last_above(a, b, limit), a < b ? behind : a);
    }
  }
}

TEST(Segments, CutResNetsAtTheirBlocks) {
  const Step step = build_step(std::make_shared<Network>(make_model("resnet50")), {.batch = 2, .fuse = true});
  const Segments segments{StepFacts(step, {})};
  const std::vector<bool> heads = segments.heads(0);
  // Each block's output is one: a batch norm with two inputs, or the batch norm behind it.
  std::int64_t blocks = 0;
  for (std::size_t t = 0; t < heads.size(); ++t)
    if (heads[t] && step.network->layer(step.tensors[t].layer).inputs.size() == 2) ++blocks;
  EXPECT_EQ(blocks, 16);
  const auto count = [](const std::vector<bool>& set) { return std::count(set.begin(), set.end(), true); };
  EXPECT_LT(count(segments.heads(segments.balanced())), count(heads));
  EXPECT_EQ(count(segments.heads(segments.largest())), 0);
}

struct AutoCase {
  const char* model;
  std::int64_t batch;
  std::string_view device = "h200";
};

Step step_for(const AutoCase& row, const Device& device) {
  Step step = build_step(std::make_shared<Network>(make_model(row.model)), {.batch = row.batch, .fuse = true});
  annotate_for(step, device);
  return step;
}

PlanResult plan(std::string_view policy, const Step& step, const CostModel& cost, std::optional<Bytes> memory) {
  PlannerOptions options = test::on_device();
  options.memory[Tier::device] = memory;
  return make_plan(find_policy(policy), step, cost, options);
}

class AutoPlans : public testing::TestWithParam<AutoCase> {};

// By the simulator, at ten budgets from the floor to the unlimited peak.
TEST_P(AutoPlans, AreNeverBehindAnotherPolicy) {
  const Device device = find_device(GetParam().device).rates();
  const DeviceModel cost(device);
  const Step step = step_for(GetParam(), device);
  const PlanResult liveness = plan("liveness", step, cost, {});
  const Bytes floor = plan("auto", step, cost, Bytes(kAlignment)).floor[Tier::device];
  for (std::int64_t ninths = 0; ninths < 10; ++ninths) {
    const Bytes memory((floor.count() + (liveness.floor[Tier::device].count() - floor.count()) / 9 * ninths) /
                       kAlignment * kAlignment);
    const PlanResult best = plan("auto", step, cost, memory);
    ASSERT_TRUE(best.plan) << ninths;
    EXPECT_LE(summarize(*best.plan).peak[Tier::device], memory);
    const double seconds = simulate(*best.plan, cost).seconds;
    for (const Policy& policy : policies()) {
      if (policy.name == "auto") continue;
      const PlanResult other = plan(policy.name, step, cost, memory);
      if (!other.plan) continue;
      EXPECT_LE(seconds, simulate(*other.plan, cost).seconds * (1 + 1e-9)) << policy.name << " " << ninths;
    }
  }
}

constexpr std::array<AutoCase, 4> kQuick{{{"alexnet", 128}, {"vgg16", 32}, {"resnet50", 64}, {"densenet121", 32}}};
constexpr std::array<AutoCase, 8> kMore{{{"vgg19", 32},
                                         {"resnet18", 64},
                                         {"resnet101", 32},
                                         {"resnet152", 16},
                                         {"inception-v3", 32},
                                         {"inception-v4", 16},
                                         {"preresnet:164", 32},
                                         {"lstm:4,256,16", 64}}};
std::vector<AutoCase> all_cases() {
  std::vector<AutoCase> all(kQuick.begin(), kQuick.end());
  all.insert(all.end(), kMore.begin(), kMore.end());
  return all;
}

// Older devices have convolutions that need large workspaces to be fast.
std::vector<AutoCase> on(std::string_view device, std::span<const AutoCase> cases, std::vector<AutoCase> more = {}) {
  for (AutoCase row : cases) {
    row.device = device;
    more.push_back(row);
  }
  return more;
}
INSTANTIATE_TEST_SUITE_P(Zoo, AutoPlans,
                         testing::ValuesIn(on("k40m", std::span(kQuick).first(3), {kQuick.begin(), kQuick.end()})));
INSTANTIATE_TEST_SUITE_P(Slow, AutoPlans, testing::ValuesIn(on("titan-x", kQuick, {kMore.begin(), kMore.end()})));

struct Gaps {
  const char* device;
  std::vector<AutoCase> networks;
};

class AutoGaps : public testing::TestWithParam<Gaps> {};

// With 45% and more of the unlimited peak.
TEST_P(AutoGaps, AreWithinATenthOfTheLowerBoundInTheMedian) {
  const Device device = find_device(GetParam().device).rates();
  const DeviceModel cost(device);
  std::vector<double> gaps;
  for (const AutoCase& row : GetParam().networks) {
    const Step step = step_for(row, device);
    const std::int64_t peak = plan("liveness", step, cost, {}).floor[Tier::device].count();
    for (const std::int64_t percent : {95, 90, 85, 80, 75, 70, 65, 60, 53, 45}) {
      PlannerOptions options = test::on_device();
      options.memory[Tier::device] = Bytes(peak / 100 * percent);
      const PlanResult result = make_plan(find_policy("auto"), step, cost, options);
      if (result.plan)
        gaps.push_back(simulate(*result.plan, cost).seconds / lower_bound(step, cost, options).seconds - 1);
    }
  }
  ASSERT_GE(gaps.size(), 5 * GetParam().networks.size());
  std::sort(gaps.begin(), gaps.end());
  EXPECT_GE(gaps.front(), -1e-9);
  EXPECT_LE(gaps[gaps.size() / 2], 0.10);
}

INSTANTIATE_TEST_SUITE_P(Zoo, AutoGaps, testing::Values(Gaps{"h200", {kQuick.begin(), kQuick.end()}}));
INSTANTIATE_TEST_SUITE_P(Slow, AutoGaps,
                         testing::Values(Gaps{"h200", all_cases()}, Gaps{"titan-x", all_cases()},
                                         Gaps{"k40m", all_cases()}));

TEST(Auto, DropsWhatIsCheapInsteadOfMovingIt) {
  const Device device = find_device("h200").rates();
  const DeviceModel cost(device);
  const auto network = std::make_shared<Network>(make_model("resnet50"));
  const BuildStep build = [&](const StepChoice& choice) {
    Step step = build_step(network, {.batch = 320, .fuse = true, .fuse_limit = choice.fuse_limit});
    annotate_for(step, device);
    return step;
  };
  PlannerOptions options = test::on_device();
  options.memory[Tier::device] = Bytes(std::int64_t{12} << 30);
  const PlanResult result = search_plan(find_policy("auto"), build, cost, options);
  ASSERT_TRUE(result.plan);
  // Half of the memory of an unlimited step for a tenth of its time.
  EXPECT_LE(simulate(*result.plan, cost).seconds, 1.1 * ideal_seconds(build({}), cost));
  // Without host memory nothing moves, and it still fits.
  options.memory[Tier::host] = Bytes();
  const PlanResult alone = search_plan(find_policy("auto"), build, cost, options);
  ASSERT_TRUE(alone.plan);
  EXPECT_TRUE(summarize(*alone.plan).offloaded_bytes.is_zero());
  EXPECT_GT(summarize(*alone.plan).recomputed_tasks, 0);
}

TEST(Auto, RandomGraphsFitWhereverAnyPolicyDoes) {
  const RooflineModel cost(generic_cpu());
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    testing_support::RandomNetwork random(seed);
    const Step step = build_step(std::make_shared<Network>(random.make(4 + static_cast<int>(seed % 29))),
                                 {.batch = 1 + seed % 5, .fuse = seed % 2 == 0});
    PlannerOptions options = test::on_device();
    options.memory[Tier::device] = Bytes(kAlignment);
    const Bytes floor = make_plan(find_policy("auto"), step, cost, options).floor[Tier::device];
    options.memory[Tier::device] = floor;
    EXPECT_TRUE(make_plan(find_policy("auto"), step, cost, options).plan) << seed;
    options.memory[Tier::device] = floor - Bytes(kAlignment);
    for (const Policy& policy : policies())
      EXPECT_FALSE(make_plan(policy, step, cost, options).plan) << policy.name << " " << seed;
  }
}

}  // namespace
}  // namespace tide
