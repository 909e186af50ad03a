// The joint planner with every guess about copies and every length of segments.
#pragma once

#include "planner/joint/segments.h"
#include "planner/search/keeper.h"

namespace tide {

// Offers the best of them that pack.
// REQUIRES: a device budget.
void consider_joint_plans(const Step& step, const StepFacts& facts, const CostModel& cost,
                          const PlanningContext& context, const std::vector<std::vector<bool>>& heads, Keeper& keeper);

// Where a step is so large that a few guesses have to do.
[[nodiscard]] bool is_large(const Step& step);

}  // namespace tide
