// How far from the limit: a time that no plan of a step can beat within a budget.
//
// It holds for every plan that runs the step's tasks in the step's order, on the lanes as the simulator
// plays them, with copies from the device on lane out and to it on lane in, and any number of replays; results
// may overwrite what their tasks allow; persistent storages stay on the device, unless the options let
// them rest in host memory. Memory counts by live bytes, so that placement is free.
#pragma once

#include "planner/search/fusing.h"

namespace tide {

struct LowerBound {
  double seconds = 0;
  // False: the build has no solver for linear programs, or there is no budget, and it is just the time
  // of the tasks themselves.
  bool solved = false;
};

[[nodiscard]] LowerBound lower_bound(const Step& step, const CostModel& cost, const PlanningContext& context);

// What no plan of search_plan() can beat, whatever the policy.
[[nodiscard]] LowerBound fused_lower_bound(const BuildStep& build, const CostModel& cost,
                                           const PlanningContext& context);

}  // namespace tide
