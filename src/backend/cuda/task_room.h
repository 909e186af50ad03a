// What the one algorithm of a task is chosen by: bytes that follow from the step alone.
#pragma once

#include "step/step.h"

namespace tide::cuda {

// Bytes that a task sees of its operands, with results in place of others where the task allows it.
[[nodiscard]] Bytes operand_bytes(const Step& step, TaskId task);
// Of the task with the most.
[[nodiscard]] Bytes largest_task(const Step& step);

}  // namespace tide::cuda
