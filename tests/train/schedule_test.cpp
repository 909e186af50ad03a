#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tide {
namespace {

std::vector<double> rates(const Schedule& schedule, std::vector<std::int64_t> steps) {
  std::vector<double> result;
  for (const std::int64_t step : steps) result.push_back(learning_rate(schedule, step));
  return result;
}

void expect_rates(const Schedule& schedule, const std::vector<std::int64_t>& steps,
                  const std::vector<double>& expected) {
  const std::vector<double> actual = rates(schedule, steps);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-15) << "step " << steps[i];
}

TEST(Schedule, Constant) { expect_rates({.base = 0.3}, {0, 1, 1000000}, {0.3, 0.3, 0.3}); }

TEST(Schedule, Step) {
  const Schedule schedule{.kind = ScheduleKind::step, .base = 0.8, .step_every = 10, .step_factor = 0.5};
  expect_rates(schedule, {0, 9, 10, 19, 20, 35}, {0.8, 0.8, 0.4, 0.4, 0.2, 0.1});
}

TEST(Schedule, StepWithoutAnIntervalStaysConstant) {
  expect_rates({.kind = ScheduleKind::step, .base = 0.8}, {0, 100}, {0.8, 0.8});
}

TEST(Schedule, Cosine) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .base = 2, .total_steps = 12};
  const double third = 1.5, half = 1, quarter = 1 + std::sqrt(0.5);  // 1 + cos(pi/3), cos(pi/2), cos(pi/4)
  expect_rates(schedule, {0, 3, 4, 6, 12, 13, 1000}, {2, quarter, third, half, 0, 0, 0});
}

TEST(Schedule, WarmUpRisesToTheBaseInItsLastStep) {
  const Schedule schedule{.base = 1, .warmup_steps = 4};
  expect_rates(schedule, {0, 1, 2, 3, 4, 5}, {0.25, 0.5, 0.75, 1, 1, 1});
}

TEST(Schedule, CosineBeginsBehindTheWarmUp) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .base = 1, .warmup_steps = 2, .total_steps = 10};
  expect_rates(schedule, {0, 1, 2, 6, 10}, {0.5, 1, 1, 0.5, 0});
}

TEST(Schedule, StepCountsFromTheStartWhateverTheWarmUp) {
  const Schedule schedule{
      .kind = ScheduleKind::step, .base = 1, .warmup_steps = 2, .step_every = 4, .step_factor = 0.1};
  expect_rates(schedule, {0, 1, 3, 4, 8}, {0.5, 1, 1, 0.1, 0.01});
}

TEST(Schedule, AWarmUpAsLongAsTheTrainingIsNoDivisionByZero) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .base = 1, .warmup_steps = 4, .total_steps = 4};
  expect_rates(schedule, {3, 4, 5}, {1, 1, 0});
}

}  // namespace
}  // namespace tide
