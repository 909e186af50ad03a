// How much to fuse is a choice too: a fused addition saves time and takes more memory at once.
// In floats, fusing changes no bits, so a step may be built in several ways and the fastest plan
// kept. In bf16 separate tasks round what fused ones keep, so everything is fused there.
#pragma once

#include <functional>

#include "planner/planner.h"

namespace tide {

// Makes a step with additions fused up to a limit (StepOptions::fuse_limit).
using BuildStep = std::function<Step(Bytes fuse_limit)>;

// The limits that make_fused_plan() tries within a budget: the first fuses everything.
[[nodiscard]] std::vector<Bytes> fuse_limits(const std::optional<Bytes>& memory, DataType activations);

// make_plan() over the steps that `build` makes for the budget: the fastest plan, or where there
// is none, the answer of the smallest floor.
[[nodiscard]] PlanResult make_fused_plan(const Policy& policy, const BuildStep& build, const CostModel& cost,
                                         const PlannerOptions& options);

}  // namespace tide
