// Parameters and optimizer state that rest in host memory: a step finds them there, at the
// bottom of that tier in table order, and leaves them there. The device has them only while
// tasks use them, so that depth is bounded by host memory.
//
//   host    |=== w ==============================|== w' ==   one stay, the whole step
//   device      |copy in, forward|     |copy in, backward, update, copy out|
#pragma once

#include <vector>

#include "planner/planner.h"

namespace tide {

// By storage; empty: none rests.
using Resting = std::vector<bool>;
[[nodiscard]] inline bool rests(const Resting& resting, StorageId storage) {
  return !resting.empty() && resting[storage.index()];
}

// PlannerOptions::rest_in_host for the storages of a step.
[[nodiscard]] Resting resting_storages(const Step& step, const PlannerOptions& options);
// The same the other way round: what a plan came to, as the option for other steps of the job.
[[nodiscard]] std::vector<bool> rest_in_host(const Plan& plan);

// Runs a policy with PlannerOptions::parameters settled. `automatic` rests nothing where the
// step does well without, and otherwise what makes the simulated step fastest.
[[nodiscard]] PlanResult plan_with_parameters(const Policy& policy, Step step, const CostModel& cost,
                                              PlannerOptions options);

}  // namespace tide
