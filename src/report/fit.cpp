#include "report/fit.h"

#include <algorithm>
#include <cmath>

#include "base/stopwatch.h"
#include "plan/checker.h"
#include "plan/summary.h"

namespace tide {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Point {
  std::int64_t size = 0;  // 0: none
  PerTier<double> needs = {};
};

// Where the line through two points reaches the budget; 0: nobody knows.
std::int64_t reaches(const Point& a, const Point& b, Tier tier, double budget) {
  const double slope = (b.needs[tier] - a.needs[tier]) / static_cast<double>(b.size - a.size);
  if (!(slope > 0)) return 0;
  const double at = static_cast<double>(a.size) + (budget - a.needs[tier]) / slope;
  return at < 9e17 ? static_cast<std::int64_t>(std::floor(at)) : static_cast<std::int64_t>(9e17);
}

class Search {
 public:
  explicit Search(const FitProblem& problem) : problem_(problem) {
    by_floor_ = problem.floor != nullptr;
    for (const TierRow& row : kTierTable)
      if (row.tier != Tier::device && problem.memory[row.tier]) by_floor_ = false;
  }

  FitResult run() {
    const Stopwatch watch;
    if (!ask(1)) {
      fit_.plan = std::move(fit_.beyond);
      fit_.beyond = {};
    } else {
      do climb();
      while (!problem_.grows && fails_.size > 0 && fits_behind());
      plan_answer();
    }
    fit_.seconds = watch.seconds();
    return std::move(fit_);
  }

 private:
  [[nodiscard]] bool within(const PlanResult& result) const {
    return by_floor_ ? !problem_.memory[Tier::device] || result.floor[Tier::device] <= *problem_.memory[Tier::device]
                     : result.plan.has_value();
  }
  [[nodiscard]] static Point point(std::int64_t size, const PlanResult& result) {
    Point at{size, {}};
    for (const TierRow& row : kTierTable) {
      at.needs[row.tier] = static_cast<double>(result.floor[row.tier].count());
      if (row.tier == Tier::device) continue;
      if (result.plan)
        at.needs[row.tier] = static_cast<double>(summarize(*result.plan).peak[row.tier].count());
      else if (row.tier != result.short_of)
        at.needs[row.tier] = kUnknown;
    }
    return at;
  }

  bool ask(std::int64_t size) {
    if (problem_.progress) problem_.progress(size, fits_.size);
    PlanResult result = by_floor_ ? problem_.floor(size) : problem_.plan(size);
    ++fit_.asked;
    const bool fits = within(result);
    if (fits) {
      before_ = fits_;
      fits_ = point(size, result);
      fit_.plan = std::move(result);
    } else {
      fails_ = point(size, result);
      fit_.beyond = std::move(result);
    }
    return fits;
  }

  // The first tier to run out says where to look.
  [[nodiscard]] std::int64_t guess(const Point& a, const Point& b) const {
    std::int64_t least = 0;
    for (const TierRow& row : kTierTable) {
      if (!problem_.memory[row.tier]) continue;
      const std::int64_t at = reaches(a, b, row.tier, static_cast<double>(problem_.memory[row.tier]->count()));
      if (at > 0 && (least == 0 || at < least)) least = at;
    }
    return least;
  }
  [[nodiscard]] std::int64_t next_size() const {
    if (fails_.size == 0) {
      constexpr std::int64_t kMostTimes = 4;  // what is far too large takes long to plan
      const std::int64_t at = before_.size > 0 && creeps_ < 2 ? guess(before_, fits_) : 0;
      // The first that is not to fit, where that is known.
      const std::int64_t least = at > 0 ? fits_.size + 1 : 2 * fits_.size;
      return std::min(std::clamp(at + 1, least, kMostTimes * fits_.size), problem_.most);
    }
    const std::int64_t at = halve_ ? (fits_.size + fails_.size) / 2 : guess(fits_, fails_);
    return std::clamp(at, fits_.size + 1, fails_.size - 1);
  }
  void climb() {
    while (fails_.size == 0 ? fits_.size < problem_.most : fails_.size - fits_.size > 1) {
      const std::int64_t size = next_size(), below = fits_.size, above = fails_.size;
      const bool fits = ask(size);
      if (above == 0) {
        creeps_ = fits && size < 2 * below ? creeps_ + 1 : 0;
        continue;
      }
      // Where the needs say that this is the last to fit, the next is asked; else half of the sizes have to go.
      const bool is_last = fits && size > below + 1 && guess(fits_, fails_) <= fits_.size;
      halve_ = !is_last && 2 * (fails_.size - fits_.size) > above - below;
    }
  }
  // Whether one of the next sizes fits after all.
  bool fits_behind() {
    constexpr std::int64_t kLeast = 16, kMost = 64, kPart = 8;
    const Point failed = fails_;
    PlanResult why = fit_.beyond;
    const std::int64_t last = std::min(failed.size + std::clamp(failed.size / kPart, kLeast, kMost), problem_.most);
    for (std::int64_t size = failed.size + 1; size <= last; ++size) {
      if (!ask(size)) continue;
      fails_ = {};
      halve_ = false;
      return true;
    }
    fails_ = failed;
    fit_.beyond = std::move(why);
    return false;
  }

  // Proved by the checker. Should measured times lead a policy to a plan that does not fit, the one that was found
  // stays.
  void plan_answer() {
    fit_.size = fits_.size;
    if (problem_.answer)
      if (PlanResult best = problem_.answer(fit_.size, fit_.plan); best.plan) fit_.plan = std::move(best);
    if (!fit_.plan.plan) fit_.plan = problem_.plan(fit_.size);
    if (fit_.plan.check_seconds == 0) require_valid(*fit_.plan.plan);
  }

  const FitProblem& problem_;
  bool by_floor_ = false;
  FitResult fit_;
  Point fits_, before_, fails_;  // the largest that does, the one before it, the smallest that does not
  int creeps_ = 0;               // sizes in a row that fit though they were to be the first that does not
  bool halve_ = false;           // the needs mislead
};

}  // namespace

FitProblem fit_of_steps(std::function<Step(std::int64_t size)> build, const Policy& policy, const CostModel& cost,
                        const PlannerOptions& options) {
  FitProblem problem;
  problem.memory = options.memory;
  problem.plan = [build = std::move(build), &policy, &cost, options](std::int64_t size) {
    return make_unproved_plan(policy, build(size), cost, options);
  };
  return problem;
}

FitResult largest_fit(const FitProblem& problem) { return Search(problem).run(); }

}  // namespace tide
