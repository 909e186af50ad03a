// A plan from a file meets the step it is to run: both must describe the same tasks over
// the same tensors.
#pragma once

#include <functional>

#include "plan/plan.h"

namespace tide {

// The plan with the steps made here, which have their network, in place of the tables it was saved with:
// `whole`, or what `cut` makes where its batch is cut.
// Throws an Error that says what differs; the result has passed the checker.
[[nodiscard]] Plan bind_plan(Plan plan, const Step& whole,
                             const std::function<Step(std::int64_t samples, Part part)>& cut);

}  // namespace tide
