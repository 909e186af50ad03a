// What a plan amounts to, in the numbers that people and papers compare.
#pragma once

#include <array>

#include "plan/plan.h"

namespace tide {

// One step as the papers count them: layers 1..N forward, N+1..2N backward.
struct StepUsage {
  std::int32_t step = 0;
  std::string task;
  Bytes live_data_bytes;
  std::int32_t live_data_tensors = 0;
  Bytes live_bytes;
};

struct PlanSummary {
  std::int32_t rounds = 0;  // of forward and backward: 1 where the batch is not cut
  PerTier<Bytes> peak;      // highest address: all classes, workspaces, copies in flight
  Bytes peak_live_bytes;    // largest sum of bytes alive at one op
  std::string peak_live_task;
  Bytes resting_bytes;    // of the host's, parameters and optimizer state that are there between steps
  Bytes peak_data_bytes;  // activations and their gradients only, unrounded
  std::int32_t peak_step = 0;
  std::string peak_task;
  std::int32_t live_data_tensors_at_peak = 0, max_live_data_tensors = 0;
  std::int32_t data_tensors = 0;
  Bytes data_bytes;
  std::int64_t tasks = 0;             // that run, over all rounds
  std::int32_t recomputed_tasks = 0;  // of them
  Bytes offloaded_bytes, prefetched_bytes;
  std::array<Bytes, kTensorClasses> classes{};  // at the op where most bytes are alive
  Bytes workspace_at_peak;
  std::vector<StepUsage> steps;
};

// REQUIRES: the plan passes the checker.
[[nodiscard]] PlanSummary summarize(const Plan& plan);

}  // namespace tide
