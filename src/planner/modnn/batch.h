// moDNN's sub-batches (its section 4.1): as large as lets every task run with its fastest algorithm,
// whatever else has to leave the device meanwhile.
//
//   S_W         what persists: parameters and their gradients, optimizer state, running statistics
//   M_min(t,b)  what task t reads, writes and works with at b samples
#pragma once

#include "planner/finish/floor.h"

namespace tide {

// The largest M_min of a step, with the workspaces of the fastest algorithms. Storages count once.
[[nodiscard]] Bytes largest_fast_task(const Step& step, const CostModel& cost);

// The part of a cut batch that decides how much memory it takes: a round, or with exact batch norm the step
// that goes through sub-batches. `samples` may be all.
// REQUIRES: context.cut; `step` is the whole one.
[[nodiscard]] Step cut_part(const Step& step, std::int64_t samples, const PlanningContext& context);

// Equation 2: S_W and the largest task of all with its smallest workspace at b = 1. No plan of rounds can
// do with less, and moDNN can with this.
// REQUIRES: context.cut; `step` is the whole one.
[[nodiscard]] Floor modnn_floor(const Step& step, const CostModel& cost, const PlanningContext& context);

// Equation 3: the largest b with S_W + max M_min(t, b) <= memory, found by b <- b (memory - S_W) / max M_min(t, b)
// with a step made and its algorithms timed for every b. The paper prints it without the factor b. Where not
// even 1 sample has room for the fastest algorithms, slower ones have to do: 1.
// REQUIRES: context.cut and a budget.
[[nodiscard]] std::int64_t modnn_sub_batch(const Step& step, const CostModel& cost, const PlanningContext& context);

// The least b that needs no more rounds: the last one is not much smaller than the others.
[[nodiscard]] std::int64_t evened(std::int64_t batch, std::int64_t sub_batch);

}  // namespace tide
