// The lower bound is one: no plan of any policy beats it. And it is worth having.
#include "planner/bound/lower_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/timeline.h"
#include "planner/bound/linear_program.h"
#include "planner/policy.h"
#include "planner/search/fusing.h"
#include "step/build.h"
#include "support/on_device.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

constexpr double kBoundRounding = 1e-9;

bool has_solver() { return solve(LinearProgram(), 1).has_value(); }

TEST(LinearProgram, NoFeasiblePointIsBelowTheBoundOfAnyMultipliers) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> number(-1, 1);
  for (int round = 0; round < 200; ++round) {
    LinearProgram program;
    std::vector<double> point;
    double value = 0;
    for (int c = 0; c < 6; ++c) {
      const double lower = number(random), size = 1 + number(random), cost = number(random);
      program.add_column(lower, lower + size, cost);
      point.push_back(lower + size * (0.5 + 0.5 * number(random)));
      value += cost * point.back();
    }
    std::vector<double> multipliers;
    for (int r = 0; r < 4; ++r) {
      std::vector<double> row(6);
      double activity = 0;
      for (std::size_t c = 0; c < row.size(); ++c) {
        row[c] = number(random);
        activity += row[c] * point[c];
      }
      const bool below = number(random) < 0, above = number(random) < 0;
      const LinearProgram::Row id =
          program.add_row(below ? activity - 0.1 : -kUnbounded, above ? activity + 0.1 : kUnbounded);
      for (std::size_t c = 0; c < row.size(); ++c) program.add(id, static_cast<LinearProgram::Column>(c), row[c]);
      multipliers.push_back(3 * number(random));
    }
    EXPECT_LE(program.bound(multipliers), value + kBoundRounding);
    if (const auto best = solve(program, 1000)) {
      EXPECT_LE(program.bound(*best), value + kBoundRounding);
      EXPECT_GE(program.bound(*best), program.bound(multipliers) - 1e-6);
    }
  }
}

// Every policy at budgets from the floor to what liveness needs. How often the bound says more than the tasks' time.
int expect_bound_holds(const Step& step, const CostModel& cost, const PlannerOptions& base, int budgets,
                       const std::string& what) {
  PlannerOptions options = base;
  options.memory[Tier::device] = Bytes(kAlignment);
  const std::int64_t floor = make_plan(find_policy("auto"), step, cost, options).floor[Tier::device].count();
  options.memory[Tier::device].reset();
  const std::int64_t peak = make_plan(find_policy("liveness"), step, cost, options).floor[Tier::device].count();
  int telling = 0;
  for (int k = 0; k < budgets; ++k) {
    options.memory[Tier::device] = Bytes((floor + (peak - floor) * k / budgets) / kAlignment * kAlignment);
    const LowerBound bound = lower_bound(step, cost, options);
    if (bound.seconds > 1.001 * ideal_seconds(step, cost)) ++telling;
    for (const Policy& policy : policies()) {
      const PlanResult result = make_plan(policy, step, cost, options);
      if (!result.plan || result.plan->numerics != Numerics::identical) continue;
      EXPECT_GE(simulate(*result.plan, cost).seconds, bound.seconds * (1 - kBoundRounding))
          << what << " " << policy.name << " budget " << k;
    }
  }
  return telling;
}

TEST(LowerBound, HoldsOnRandomNetworks) {
  int telling = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    testing_support::RandomNetwork random(seed);
    // Links from much slower to much faster than the tasks.
    Device device = generic_cpu();
    device.launch_seconds = seed % 3 == 0 ? 5e-6 : 1e-8;
    device.link_bytes_per_second = 1e8 * std::pow(10.0, seed % 4);
    const RooflineModel cost(device);
    const Step step = build_step(std::make_shared<Network>(random.make(3 + static_cast<int>(seed % 23))),
                                 {.batch = 1 + 3 * (seed % 5), .fuse = seed % 2 == 0});
    PlannerOptions options;
    options.parameters = seed % 5 == 0 ? Parameters::automatic : Parameters::device;
    if (seed % 7 == 0) options.memory[Tier::host] = Bytes();
    telling += expect_bound_holds(step, cost, options, 5, "seed " + std::to_string(seed));
  }
  EXPECT_GE(telling, has_solver() ? 80 : 0);
}

struct BoundCase {
  const char* model;
  std::int64_t batch;
  const char* device;
  Parameters parameters = Parameters::device;
  Rules rules = Rules::minimal;
};

class LowerBounds : public testing::TestWithParam<BoundCase> {};

TEST_P(LowerBounds, HoldOnTheZoo) {
  const Device device = find_device(GetParam().device).rates();
  const DeviceModel cost(device);
  Step step =
      build_step(std::make_shared<Network>(make_model(GetParam().model)),
                 {.batch = GetParam().batch, .rules = GetParam().rules, .fuse = GetParam().rules == Rules::minimal});
  annotate_for(step, device);
  PlannerOptions options;
  options.parameters = GetParam().parameters;
  expect_bound_holds(step, cost, options, 4, GetParam().model);
}

INSTANTIATE_TEST_SUITE_P(Zoo, LowerBounds,
                         testing::Values(BoundCase{"lenet", 64, "k40m"}, BoundCase{"alexnet", 128, "h200"},
                                         BoundCase{"alexnet", 128, "titan-x", Parameters::automatic},
                                         BoundCase{"vgg16", 16, "k40m"}, BoundCase{"resnet18", 32, "titan-x"},
                                         BoundCase{"resnet50", 64, "h200"},
                                         BoundCase{"resnet50", 8, "h200", Parameters::automatic},
                                         BoundCase{"preresnet:164", 32, "h200"},
                                         BoundCase{"resnet50", 16, "h200", Parameters::device, Rules::superneurons}));
INSTANTIATE_TEST_SUITE_P(Slow, LowerBounds,
                         testing::Values(BoundCase{"inception-v3", 32, "h200"}, BoundCase{"densenet121", 32, "titan-x"},
                                         BoundCase{"lstm:4,256,16", 64, "h200"}, BoundCase{"resnet152", 16, "k40m"},
                                         BoundCase{"fcn", 16, "h200"}));

TEST(LowerBound, SaysMoreThanTheTimeOfTheTasksWhereMemoryIsShort) {
  if (!has_solver()) GTEST_SKIP() << "this build has no solver for linear programs";
  const Device device = find_device("h200").rates();
  const DeviceModel cost(device);
  Step step = build_step(std::make_shared<Network>(make_model("resnet50")), {.batch = 64, .fuse = true});
  annotate_for(step, device);
  const double ideal = ideal_seconds(step, cost);
  PlannerOptions options = test::on_device();
  EXPECT_FALSE(lower_bound(step, cost, options).solved);
  EXPECT_DOUBLE_EQ(lower_bound(step, cost, options).seconds, ideal);
  const std::int64_t peak = make_plan(find_policy("liveness"), step, cost, options).floor[Tier::device].count();
  double before = ideal;
  for (const std::int64_t percent : {80, 60, 40}) {
    options.memory[Tier::device] = Bytes(peak / 100 * percent);
    const LowerBound bound = lower_bound(step, cost, options);
    EXPECT_TRUE(bound.solved);
    EXPECT_GE(bound.seconds, before * 1.005);
    before = bound.seconds;
    // And without host memory no less.
    options.memory[Tier::host] = Bytes();
    EXPECT_GE(lower_bound(step, cost, options).seconds, before * (1 - kBoundRounding));
    options.memory[Tier::host].reset();
  }
}

}  // namespace
}  // namespace tide
