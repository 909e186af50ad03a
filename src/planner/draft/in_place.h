// In-place results: merges the storage of a result into that of an operand wherever the
// task allows it and nobody reads the operand afterwards.
#pragma once

#include "step/step.h"

namespace tide {

// REQUIRES: not merged yet.
[[nodiscard]] Step merge_in_place(Step step);

// The same, for plans that run tasks again in any order: forward results only where the operand is
// made alone and read by nobody else, so that it can come back whenever they do; and gradients never
// over what is run again.
[[nodiscard]] Step merge_replayable(Step step);

}  // namespace tide
