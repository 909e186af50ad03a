// Training in sub-batches: rounds of forward and backward over a few samples each, which add up
// the gradients of the parameters, then one update. Every round is planned like a step of its own.
//
//   batch 10 in sub-batches of 4:   first(4)  later(4)  later(2)  update
//
// A batch norm in a round has the statistics of the round. With exact batch norm the batch is cut
// within one step instead (StepOptions::sub_batch).
#pragma once

#include "planner/planner.h"

namespace tide {

// The plan of `plan` for each part, as phases; the answer of the most demanding part where one does
// not fit. With all of the batch in one sub-batch, the plan of the whole step.
// REQUIRES: context.cut, unless sub_batch is the batch of `step`, the whole one; 1 <= sub_batch <= it.
[[nodiscard]] PlanResult plan_rounds(PolicyFunction plan, const Step& step, std::int64_t sub_batch,
                                     const CostModel& cost, const PlanningContext& context);

// The sub-batch that was asked for; 0: none, or the step is not larger. Throws an Error where cutting would change the
// numbers more than is allowed.
[[nodiscard]] std::int64_t sub_batch_asked(const Step& step, const PlanningContext& context);

// What cutting its batch does to the numbers of a step.
[[nodiscard]] Numerics numerics_of_rounds(const Step& step, const PlanningContext& context);

// For planning a part of a step: what is known about the whole does not hold for it.
[[nodiscard]] PlanningContext for_part(PlanningContext context);

// Whether sub-batches are cut within one step, for the sake of its batch norms.
[[nodiscard]] bool cuts_within(const Step& step, const PlanningContext& context);

// Whether the policies may cut the batch of a step: there is a way to, and the numbers may change so far.
[[nodiscard]] bool may_cut(const Step& step, const PlanningContext& context);

}  // namespace tide
