// One search over what is open about a plan, from the outside in. Each loop has a file of its own that says what there
// is to choose from; every candidate goes through a Keeper.
//
//   updates   of several ranks: behind the backward pass, or sooner
//   rungs     how much of the budget a plan is made for           rungs.h
//     fusing    how much of the step is fused                     fusing.h
//       resting   which parameters rest in host memory            resting.h
//         rounds    into which sub-batches the batch is cut       rounds.h
//           policy    how a step is planned                       policies/
#pragma once

#include "planner/policy.h"
#include "planner/search/fusing.h"

namespace tide {

// The fastest plan over the steps that `build` makes, or where there is none, the answer of the smallest floor.
[[nodiscard]] PlanResult search_plan(const Policy& policy, const BuildStep& build, const CostModel& cost,
                                     const PlanningContext& context);

// Some plan where there is one, not always the fastest; whose `policy` is that where it is the one of search_plan().
[[nodiscard]] PlanResult search_any_plan(const Policy& policy, const BuildStep& build, const CostModel& cost,
                                         const PlanningContext& context);
// The floor of the policy alone, at whatever budget: the plan is left out.
[[nodiscard]] PlanResult search_floor(const Policy& policy, const BuildStep& build, const CostModel& cost,
                                      const PlanningContext& context);

}  // namespace tide
