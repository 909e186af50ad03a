// How much to fuse is a choice too: a fused addition saves time and takes more memory at once.
// In floats, fusing changes no bits, so a step may be built in several ways and the fastest plan
// kept. In bf16 separate tasks round what fused ones keep, so everything is fused there.
#pragma once

#include <functional>

#include "planner/lower_bound.h"

namespace tide {

// What is open about a step.
struct StepChoice {
  Bytes fuse_limit = {};     // see StepOptions
  std::int64_t samples = 0;  // of a part, or of a sub-batch of the whole; 0: the batch
  Part part = Part::whole;
  // For the options of the step with this batch.
  void apply_to(StepOptions& options) const;
};
using BuildStep = std::function<Step(const StepChoice& choice)>;

// The limits that make_fused_plan() tries within a budget: the first fuses everything.
[[nodiscard]] std::vector<Bytes> fuse_limits(const std::optional<Bytes>& memory, DataType activations);

// make_plan() over the steps that `build` makes for the budget: the fastest plan, or where there
// is none, the answer of the smallest floor.
[[nodiscard]] PlanResult make_fused_plan(const Policy& policy, const BuildStep& build, const CostModel& cost,
                                         PlannerOptions options);

// What no plan of make_fused_plan() can beat, whatever the policy.
[[nodiscard]] LowerBound fused_lower_bound(const BuildStep& build, const CostModel& cost,
                                           const PlannerOptions& options);

}  // namespace tide
