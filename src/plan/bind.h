// A plan from a file meets the step it is to run: both must describe the same tasks over
// the same tensors.
#pragma once

#include "plan/plan.h"

namespace tide {

// The plan with `fresh` (which has its network) in place of the tables it was saved with.
// Throws an Error that says what differs; the result has passed the checker.
[[nodiscard]] Plan bind_plan(Plan plan, Step fresh);

}  // namespace tide
