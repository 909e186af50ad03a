// The largest size, a batch or a depth, for which a policy still has a plan.
#pragma once

#include <functional>

#include "planner/planner.h"
#include "planner/policy.h"

namespace tide {

struct FitProblem {
  std::function<Step(std::int64_t size)> build;  // the step of that size, annotated
  const Policy* policy = nullptr;
  const CostModel* cost = nullptr;
  PlannerOptions options;
  std::int64_t most = kMostSamples;  // sizes beyond are not asked for
  // Told the step of the answer before it is planned for good, so that its times can be measured: those of
  // all that a search asks for would take too long.
  std::function<void(const Step& step)> before_answer = {};
};

struct FitResult {
  std::int64_t size = 0;  // 0: not even 1 fits
  PlanResult plan;        // of `size`, proved by the checker; of 1, without a plan, where that does not fit
  PlanResult beyond;      // of size + 1: no plan, and why; empty where `most` was reached
  int plans = 0;          // made on the way
  double build_seconds = 0, plan_seconds = 0, check_seconds = 0;
};

// Larger sizes are taken to need more, so that a search is possible; that size + 1 does not
// fit is always asked. Only the answer goes through the checker. Floors of plans already made
// say where to look next, and halving bounds the number of plans where they mislead.
[[nodiscard]] FitResult largest_fit(const FitProblem& problem);

}  // namespace tide
