// Runs one task in double precision, written for obviousness: the oracle of all tests.
#pragma once

#include "backend/reference/task.h"

namespace tide {

// operands[i] is the value of the task's operand i (NHWC order for activations, logical
// order for parameters); written ones are resized. No two may be the same vector.
void run_reference(const Step& step, TaskId task, std::span<reference::Values* const> operands, const StepState& state);

}  // namespace tide
