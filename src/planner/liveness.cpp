// SuperNeurons' liveness analysis: a storage takes memory from the task that first writes
// it to the last task that reads it. The paper's runtime allocates from a heap as it goes;
// here the whole step is known, so the stays are packed ahead.
#include <algorithm>

#include "planner/in_place.h"
#include "planner/layout.h"
#include "planner/policies.h"

namespace tide {

PlanResult plan_liveness(Step step, const CostModel& /*cost*/, const PlannerOptions& options) {
  if (options.in_place) step = merge_in_place(std::move(step));
  std::vector<Op> ops = runs_in_order(step);
  const std::vector<Interval> lives = lifetimes(step);

  // What moves: transient storages, then the workspace of each op that has one.
  std::vector<Interval> stays;
  std::vector<StorageId> stored;
  Layout layout;
  Bytes bottom;
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    if (lives[s].last < lives[s].first) continue;
    if (step.storages[s].persistent) {
      layout.residencies.push_back({StorageId(s), Tier::device, lives[s].first, lives[s].last, bottom});
      bottom += step.storages[s].bytes.aligned();
    } else {
      stays.push_back(lives[s]);
      stored.push_back(StorageId(s));
    }
  }
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Bytes workspace = step.algorithms_of(ops[i].task)[ops[i].algorithm].workspace;
    if (workspace.is_zero()) continue;
    stays.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(i), workspace});
    owners.push_back(i);
  }

  const Placement placement = place(stays);
  for (std::size_t k = 0; k < stored.size(); ++k)
    layout.residencies.push_back(
        {stored[k], Tier::device, stays[k].first, stays[k].last, bottom + placement.addresses[k]});
  layout.workspaces.resize(ops.size());
  for (std::size_t k = 0; k < owners.size(); ++k)
    layout.workspaces[owners[k]] = bottom + placement.addresses[stored.size() + k];
  layout.peak = bottom + placement.peak;
  const std::int32_t peak_op = std::max(live_peak(stays).op, 0);
  if (!ops.empty()) layout.bottleneck = task_name(step, ops[static_cast<std::size_t>(peak_op)].task);
  return finish_plan(std::move(step), std::move(ops), std::move(layout), options);
}

}  // namespace tide
