// When each op of a phase ran: what the simulator predicts and what the executor records,
// in one type, so that the two lie on one axis.
#pragma once

#include <vector>

#include "cost/model.h"
#include "plan/plan.h"

namespace tide {

struct Span {
  std::int32_t op = 0;
  double start = 0, end = 0;  // seconds from the start of the step
};

struct Timeline {
  std::vector<Span> spans;  // one per op, in the plan's order, phases and repeats in turn
  double seconds = 0;
};

// Plays a plan against a cost model: an op starts when its lane is free and everything it
// waits for is done.
// REQUIRES: the plan passes the checker.
[[nodiscard]] Timeline simulate(const Plan& plan, const CostModel& cost);

// The same tasks with unlimited memory: every task once, with its fastest algorithm,
// nothing moved or recomputed; each lane in order.
[[nodiscard]] double ideal_seconds(const Step& step, const CostModel& cost);

}  // namespace tide
