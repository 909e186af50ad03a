// The clock of planners that work through a step once and simulate what they do.
#pragma once

#include <vector>

#include "cost/algorithms.h"
#include "planner/draft/facts.h"

namespace tide {

struct StepClock {
  StepClock(const StepFacts& facts, const CostModel& cost)
      : device_ready(facts.step().storages.size(), 0),
        host_ready(facts.step().storages.size(), 0),
        remaining(static_cast<std::size_t>(facts.tasks()) + 1, 0) {
    for (std::size_t t = remaining.size() - 1; t-- > 0;)
      remaining[t] = remaining[t + 1] + fastest_seconds(facts.step(), cost, TaskId(t));
  }

  // From the start of the task at one position to that of a later one, if nothing waits.
  [[nodiscard]] double between(std::int32_t from, std::int32_t to) const {
    return remaining[static_cast<std::size_t>(from)] - remaining[static_cast<std::size_t>(to)];
  }

  PerLane<double> free{0};                       // when each lane is
  std::vector<double> device_ready, host_ready;  // by storage: when the value is there
  std::vector<double> remaining;  // by position: seconds of tasks, with the fastest algorithms, from there to the end
};

}  // namespace tide
