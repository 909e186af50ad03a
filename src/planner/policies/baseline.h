// Every storage has its own memory.
#pragma once

#include "planner/planner.h"

namespace tide {

PlanResult plan_baseline(Step step, const CostModel& cost, const PlanningContext& context);

}  // namespace tide
