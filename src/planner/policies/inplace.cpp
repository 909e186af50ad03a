// As baseline, with fewer storages: results take the place of operands that nobody needs any more.
#include "planner/draft/in_place.h"
#include "planner/policies/baseline.h"
#include "planner/policy.h"

namespace tide {
namespace {

PlanResult plan_inplace(Step step, const CostModel& cost, const PlanningContext& context) {
  return plan_baseline(merge_in_place(std::move(step)), cost, context);
}

}  // namespace

Policy inplace_policy() {
  return {.name = "inplace",
          .description = "baseline, but results overwrite operands that nobody needs any more",
          .plan = plan_inplace,
          .rank = 2,
          .moves = false};
}

}  // namespace tide
