// The values of a step that may be away from the device between two uses, as the lower bound sees them.
#pragma once

#include "planner/draft/facts.h"

namespace tide {

struct BoundValue {
  std::int64_t bytes = 0;
  double copy_seconds = 0;         // there or back
  std::int32_t made = -1;          // position of the task that makes it; -1: the step begins with it
  std::vector<std::int32_t> uses;  // positions, ascending, `made` included
  // The last position at which it can be of use, if only for what is run again from it.
  std::int32_t until = 0;
  TaskId replay;         // that makes it again; invalid where there is none
  bool rests = false;    // a persistent storage that may rest in host memory, with all its values
  bool changes = false;  // and that a task of the step writes

  [[nodiscard]] bool enters() const { return made < 0; }
  // Whether a task of [first, last) uses it.
  [[nodiscard]] bool used_within(std::int32_t first, std::int32_t last) const;
};

struct BoundValues {
  std::vector<BoundValue> values;
  std::vector<std::int32_t> of_tensor;  // by tensor: its value, or -1: too small to matter, or always there
  std::vector<std::int64_t> needed;     // by position: bytes of operands by storage and the smallest workspace
  std::int64_t fixed = 0;               // bytes of what never leaves
};

// Values below `smallest` bytes are left out: as if they took no room and were always there.
[[nodiscard]] BoundValues bound_values(const StepFacts& facts, const CostModel& cost, const PlanningContext& context,
                                       std::int64_t smallest);

}  // namespace tide
