// Training in sub-batches: rounds of forward and backward over a few samples each, which add up
// the gradients of the parameters, then one update. Every round is planned like a step of its own.
//
//   batch 10 in sub-batches of 4:   first(4)  later(4)  later(2)  update
#pragma once

#include "planner/planner.h"

namespace tide {

// The plan of `plan` for each part; the answer of the worst part where one does not fit.
// REQUIRES: options.cut; 1 <= sub_batch <= batch of `step`, the whole one.
[[nodiscard]] PlanResult plan_rounds(PolicyFunction plan, const Step& step, std::int64_t sub_batch, const CostModel& cost,
                                     const PlannerOptions& options);

// What cutting its batch does to the numbers of a step.
[[nodiscard]] Numerics numerics_of_rounds(const Step& step);

}  // namespace tide
