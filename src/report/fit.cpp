#include "report/fit.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "planner/search/resting.h"

namespace tide {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Point {
  std::int64_t size = 0;
  double floor = 0;
};

// Where the line through two points reaches the budget.
std::int64_t reaches(const Point& a, const Point& b, double budget) {
  const double slope = (b.floor - a.floor) / static_cast<double>(b.size - a.size);
  if (!(slope > 0)) return 0;
  const double at = static_cast<double>(a.size) + (budget - a.floor) / slope;
  return at < 9e17 ? static_cast<std::int64_t>(std::floor(at)) : static_cast<std::int64_t>(9e17);
}

}  // namespace

FitResult largest_fit(const FitProblem& problem) {
  FitResult fit;
  const double budget = problem.options.memory[Tier::device]
                            ? static_cast<double>(problem.options.memory[Tier::device]->count())
                            : INFINITY;
  const auto plan = [&](std::int64_t size) {
    const auto start = std::chrono::steady_clock::now();
    Step step = problem.build(size);
    fit.build_seconds += seconds_since(start);
    const auto plan_start = std::chrono::steady_clock::now();
    PlanResult result = make_unproved_plan(*problem.policy, std::move(step), *problem.cost, problem.options);
    fit.plan_seconds += seconds_since(plan_start);
    ++fit.plans;
    return result;
  };
  const auto point = [](std::int64_t size, const PlanResult& result) {
    return Point{size, static_cast<double>(result.floor[Tier::device].count())};
  };

  PlanResult first = plan(1);
  if (!first.plan) {
    fit.plan = std::move(first);
    return fit;
  }
  Point fits = point(1, first), before = fits, fails;
  bool halve = false;
  while (fails.size == 0 ? fits.size < problem.most : fails.size - fits.size > 1) {
    std::int64_t next = 0;
    if (fails.size == 0) {
      next = before.size < fits.size ? reaches(before, fits, budget) : 0;
      next = std::clamp(next, 2 * fits.size, 64 * fits.size);
      next = std::min(next, problem.most);
    } else {
      next = halve ? (fits.size + fails.size) / 2 : reaches(fits, fails, budget);
      next = std::clamp(next, fits.size + 1, fails.size - 1);
    }
    const std::int64_t width = fails.size - fits.size;
    PlanResult result = plan(next);
    if (result.plan) {
      before = fits;
      fits = point(next, result);
    } else {
      fails = point(next, result);
      fit.beyond = std::move(result);
    }
    halve = width > 0 && 2 * (fails.size - fits.size) > width;
  }
  fit.size = fits.size;
  const auto start = std::chrono::steady_clock::now();
  Step step = problem.build(fit.size);
  fit.build_seconds += seconds_since(start);
  fit.plan = make_plan(*problem.policy, std::move(step), *problem.cost, problem.options);
  fit.plan_seconds += fit.plan.plan_seconds;
  fit.check_seconds = fit.plan.check_seconds;
  ++fit.plans;
  return fit;
}

}  // namespace tide
