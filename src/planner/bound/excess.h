// A quick answer to whether any plan of a step can be faster than a given time within a budget: what exceeds the budget
// where most is alive has to leave, as far as the link has time for it, or to be run again. It is weaker than the lower
// bound (lower_bound.h), of which it is one instant, and takes no solver: searches ask it before they plan.
#pragma once

#include <vector>

#include "planner/planner.h"

namespace tide {

class Excess {
 public:
  // Of what the context says, budgets do not count.
  Excess(const Step& step, const CostModel& cost, const PlanningContext& context);

  // False: no plan within so much device memory takes less time. `moves`: whether it may copy anything.
  [[nodiscard]] bool allows(Bytes memory, double seconds, bool moves) const;

 private:
  // The ways to run a task.
  struct Way {
    std::int64_t bytes = 0;  // of its operands, workspace and what never leaves, at least
    double seconds = 0;
  };
  // Values that one replay makes again.
  struct Droppable {
    double bytes = 0, seconds = 0;
  };

  double alive_ = 0;                    // bytes where most is alive, less what may be absent for nothing
  std::size_t instant_ = 0;             // the task that starts there
  double bytes_per_second_ = 0;         // of copies, at most
  std::vector<std::vector<Way>> ways_;  // by task
  std::vector<Droppable> cheapest_;     // first
};

}  // namespace tide
