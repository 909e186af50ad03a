// Nothing moves and nothing is run again: what most others begin with.
#pragma once

#include "planner/planner.h"

namespace tide {

PlanResult plan_liveness(Step step, const CostModel& cost, const PlanningContext& context);

}  // namespace tide
