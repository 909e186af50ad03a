// What the planners of this folder share: ops in the step's own order, lifetimes of
// storages over these ops, and a plan from lifetimes and addresses.
#pragma once

#include <vector>

#include "memory/placement.h"
#include "planner/resting.h"

namespace tide {

// One Run per ordered task on the compute lane, each with its fastest algorithm.
[[nodiscard]] std::vector<Op> runs_in_order(const Step& step);

// By storage: from its first to its last use over the ordered tasks; persistent storages
// from kEntry to the end, inputs from kEntry to their last use. Storages that no task
// uses and that do not persist have last < first.
[[nodiscard]] std::vector<Interval> lifetimes(const Step& step);

// Of a task's algorithms, the one with the smallest workspace.
[[nodiscard]] std::uint32_t smallest_algorithm(const Step& step, TaskId task);

// The task with the largest sum of operands and smallest workspace, by storage: no plan that
// keeps the persistent storages that do not rest besides can do with less.
struct LargestTask {
  TaskId task;
  Bytes bytes;
};
[[nodiscard]] LargestTask largest_task(const Step& step, const Resting& resting = {});

// Persistent storages stand at the bottom in table order, so that every step variant of
// one network (other batch, evaluation) has them at the same addresses. Those that rest do not
// count.
[[nodiscard]] Bytes persistent_bytes(const Step& step, const Resting& resting = {});

// How the stays of a plan are given addresses.
struct Layout {
  std::vector<Residency> residencies;
  std::vector<Bytes> workspaces;  // by op
  Bytes peak;
  std::string bottleneck;
};

// Puts the parts together; without a plan where the peak exceeds the budget.
[[nodiscard]] PlanResult finish_plan(Step step, std::vector<Op> ops, Layout layout, const PlannerOptions& options);

}  // namespace tide
