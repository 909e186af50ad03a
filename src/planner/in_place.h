// In-place results: merges the storage of a result into that of an operand wherever the
// task allows it and nobody reads the operand afterwards.
#pragma once

#include "step/step.h"

namespace tide {

// REQUIRES: not merged yet.
[[nodiscard]] Step merge_in_place(Step step);

}  // namespace tide
