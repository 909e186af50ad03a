// The search behind `tide fit`, against needs of every shape.
#include "report/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "planner/policy.h"
#include "report/resnet_depth.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using Need = std::int64_t (*)(std::int64_t size);
Need g_need = nullptr;  // a policy is a plain function

// Needs and budgets are counted from here, so that a real plan, which the answer has to be
// because it goes through the checker, is far below both.
constexpr std::int64_t kBase = 1LL << 40;

// Has a plan where the need of the batch fits.
PlanResult plan_by_need(Step step, const CostModel& cost, const PlanningContext& options) {
  const Bytes floor(kBase + g_need(step.options.batch));
  PlanResult result = find_policy("liveness").plan(std::move(step), cost, {});
  result.floor[Tier::device] = floor;
  if (floor > *options.memory[Tier::device]) result.plan.reset();
  return result;
}

struct SearchCase {
  const char* name;
  Need need;
  std::int64_t budget;
};

class FitSearch : public testing::TestWithParam<SearchCase> {};

TEST_P(FitSearch, FindsTheLargestWithFewPlans) {
  g_need = GetParam().need;
  const auto network = std::make_shared<const Network>(make_model("lenet"));
  const Policy policy{"by need", "", plan_by_need};
  const RooflineModel cost(generic_cpu());
  PlannerOptions options;
  options.memory[Tier::device] = Bytes(kBase + GetParam().budget);
  std::vector<std::int64_t> asked;
  const auto build = [&](std::int64_t size) {
    asked.push_back(size);
    return build_step(network, {.batch = size, .rules = Rules::minimal, .training = true, .optimizer = {}});
  };
  const FitResult fit = largest_fit(fit_of_steps(build, policy, cost, options));

  std::int64_t expected = 0;
  while (g_need(expected + 1) <= GetParam().budget) ++expected;
  EXPECT_EQ(fit.size, expected);
  EXPECT_EQ(static_cast<int>(asked.size()), fit.asked);
  if (expected == 0) {
    EXPECT_FALSE(fit.plan.plan);
    EXPECT_EQ(fit.asked, 1);
    return;
  }
  EXPECT_TRUE(fit.plan.plan);
  EXPECT_FALSE(fit.beyond.plan);
  EXPECT_EQ(fit.beyond.floor[Tier::device].count(), kBase + g_need(expected + 1))
      << "the reason is that of one more, not of any larger size";
  EXPECT_NE(std::find(asked.begin(), asked.end(), expected + 1), asked.end());
  EXPECT_LE(fit.asked, 8 + 3 * static_cast<int>(std::log2(static_cast<double>(expected) + 1)));
}

INSTANTIATE_TEST_SUITE_P(
    Needs, FitSearch,
    testing::Values(
        SearchCase{"linear", [](std::int64_t n) { return 1000 + 7 * n; }, 100'000},
        SearchCase{"proportional", [](std::int64_t n) { return 512 * n; }, 512 * 300},
        SearchCase{"nothing", [](std::int64_t n) { return 1000 + n; }, 1000},
        SearchCase{"one", [](std::int64_t n) { return 1000 * n; }, 1999},
        SearchCase{"two", [](std::int64_t n) { return 1000 * n; }, 2000},
        SearchCase{"quadratic", [](std::int64_t n) { return 50 + n * n; }, 1'000'000},
        SearchCase{"root", [](std::int64_t n) { return static_cast<std::int64_t>(1000 * std::sqrt(n)); }, 30'000},
        SearchCase{"steps", [](std::int64_t n) { return 1000 * (n / 64 + 1); }, 9500},
        SearchCase{"cliff", [](std::int64_t n) -> std::int64_t { return n < 777 ? 10 : 1'000'000'000; }, 1000},
        SearchCase{"bend", [](std::int64_t n) { return n < 100 ? 10 * n : 1000 + 3000 * (n - 100); }, 90'000}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(FitSearchLimits, StopsAtTheMostThatMayBeAsked) {
  g_need = [](std::int64_t) -> std::int64_t { return 1; };
  const auto network = std::make_shared<const Network>(make_model("lenet"));
  const Policy policy{"by need", "", plan_by_need};
  const RooflineModel cost(generic_cpu());
  PlannerOptions options;
  options.memory[Tier::device] = Bytes(kBase + 1000);
  const auto build = [&](std::int64_t size) {
    EXPECT_LE(size, 500);
    return build_step(network, {.batch = size, .rules = Rules::minimal, .training = true, .optimizer = {}});
  };
  FitProblem problem = fit_of_steps(build, policy, cost, options);
  problem.most = 500;
  const FitResult fit = largest_fit(problem);
  EXPECT_EQ(fit.size, 500);
  EXPECT_TRUE(fit.beyond.floor[Tier::device].is_zero());
}

TEST(ResNetDepth, CountsAsThePaper) {
  EXPECT_EQ(residual_depth("resnet:3,4,6,3"), 50);
  EXPECT_EQ(residual_depth("resnet:3,8,36,3@10"), 152);
  EXPECT_EQ(residual_depth("resnet:6,32,596,6"), 1922);
  EXPECT_TRUE(has_unknown("resnet:6,32,?,6"));
  EXPECT_FALSE(has_unknown("resnet50"));
  EXPECT_EQ(with_unknown("resnet:6,32,?,6@10", 7), "resnet:6,32,7,6@10");
  EXPECT_THROW((void)has_unknown("vgg?"), Error);
  EXPECT_THROW((void)has_unknown("resnet:?,?,1,1"), Error);
}

}  // namespace
}  // namespace tide
