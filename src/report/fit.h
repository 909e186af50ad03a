// The largest size, a batch or a depth, that a budget holds.
#pragma once

#include <functional>

#include "planner/planner.h"
#include "planner/policy.h"

namespace tide {

struct FitProblem {
  // Of a size, within the budgets.
  std::function<PlanResult(std::int64_t size)> plan = {};
  // Its floor alone, which is quicker. Asked instead where only the device's memory is limited: a floor is enough.
  std::function<PlanResult(std::int64_t size)> floor = {};
  // The plan of the answer for good, given the one that was found: the best of all sizes, or measured times of all,
  // would take too long.
  std::function<PlanResult(std::int64_t size, PlanResult found)> answer = {};
  PerTier<std::optional<Bytes>> memory = {};  // the budgets
  bool grows = true;                          // no size needs less than a smaller one
  std::int64_t most = kMostSamples;           // sizes beyond are not asked for
  // Told of each size before it is asked for, and of the largest so far that fits.
  std::function<void(std::int64_t size, std::int64_t fits)> progress = {};
};

// Every size a step that is planned as it is.
[[nodiscard]] FitProblem fit_of_steps(std::function<Step(std::int64_t size)> build, const Policy& policy,
                                      const CostModel& cost, const PlannerOptions& options);

struct FitResult {
  std::int64_t size = 0;  // 0: not even 1 fits
  PlanResult plan;        // of `size`, proved by the checker; of 1, without a plan, where that does not fit
  PlanResult beyond;      // of size + 1: no plan, and why; empty where `most` was reached
  int asked = 0;          // sizes on the way
  double seconds = 0;     // of all
};

// That size + 1 does not fit is always asked. Where needs grow with the size, no larger one fits: what is asked is
// halved in between, with needs already known to say where to look next. Where they do not, some sizes behind it are
// asked, too, but not all.
[[nodiscard]] FitResult largest_fit(const FitProblem& problem);

}  // namespace tide
