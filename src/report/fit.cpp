#include "report/fit.h"

#include <algorithm>
#include <cmath>

#include "base/stopwatch.h"
#include "planner/search/resting.h"

namespace tide {
namespace {

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

class Search {
 public:
  explicit Search(const FitProblem& problem)
      : problem_(problem),
        budget_(problem.options.memory[Tier::device]
                    ? static_cast<double>(problem.options.memory[Tier::device]->count())
                    : INFINITY) {}

  FitResult run() {
    PlanResult first = plan(1);
    if (!first.plan) {
      fit_.plan = std::move(first);
      return std::move(fit_);
    }
    fits_ = before_ = point(1, first);
    while (fails_.size == 0 ? fits_.size < problem_.most : fails_.size - fits_.size > 1) try_next();
    plan_answer();
    return std::move(fit_);
  }

 private:
  static Point point(std::int64_t size, const PlanResult& result) {
    return {size, static_cast<double>(result.floor[Tier::device].count())};
  }
  Step build(std::int64_t size) {
    const Stopwatch watch;
    Step step = problem_.build(size);
    fit_.build_seconds += watch.seconds();
    return step;
  }
  PlanResult plan(std::int64_t size) {
    Step step = build(size);
    const Stopwatch watch;
    PlanResult result = make_unproved_plan(*problem_.policy, step, *problem_.cost, problem_.options);
    fit_.plan_seconds += watch.seconds();
    ++fit_.plans;
    return result;
  }
  [[nodiscard]] std::int64_t next_size() const {
    if (fails_.size == 0) {
      const std::int64_t guess = before_.size < fits_.size ? reaches(before_, fits_, budget_) : 0;
      return std::min(std::clamp(guess, 2 * fits_.size, 64 * fits_.size), problem_.most);
    }
    const std::int64_t guess = halve_ ? (fits_.size + fails_.size) / 2 : reaches(fits_, fails_, budget_);
    return std::clamp(guess, fits_.size + 1, fails_.size - 1);
  }
  void try_next() {
    const std::int64_t size = next_size(), width = fails_.size - fits_.size;
    PlanResult result = plan(size);
    if (result.plan) {
      before_ = fits_;
      fits_ = point(size, result);
    } else {
      fails_ = point(size, result);
      fit_.beyond = std::move(result);
    }
    halve_ = width > 0 && 2 * (fails_.size - fits_.size) > width;
  }
  // Proved by the checker, and by measured times where there are such. Should those lead a policy to a plan that
  // does not fit, the one that was found stays.
  void plan_answer() {
    fit_.size = fits_.size;
    if (problem_.before_answer) {
      Step step = build(fit_.size);
      problem_.before_answer(step);
      plan_for_good(step);
    }
    if (!fit_.plan.plan) plan_for_good(build(fit_.size));
  }
  void plan_for_good(const Step& step) {
    fit_.plan = make_plan(*problem_.policy, step, *problem_.cost, problem_.options);
    fit_.plan_seconds += fit_.plan.plan_seconds;
    fit_.check_seconds += fit_.plan.check_seconds;
    ++fit_.plans;
  }

  const FitProblem& problem_;
  double budget_;
  FitResult fit_;
  Point fits_, before_, fails_;  // the largest that does, the one before it, the smallest that does not; size 0: none
  bool halve_ = false;           // the floors mislead
};

}  // namespace

FitResult largest_fit(const FitProblem& problem) { return Search(problem).run(); }

}  // namespace tide
