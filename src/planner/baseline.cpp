// The naive strategies: every storage has its own memory for the whole step. `inplace`
// differs only in having fewer storages.
#include <algorithm>

#include "planner/in_place.h"
#include "planner/layout.h"
#include "planner/policies.h"

namespace tide {
namespace {

// Everything one after the other; one workspace, as large as the largest, behind it.
Layout lay_out_separately(const Step& step, const std::vector<Op>& ops) {
  Layout layout;
  const std::vector<Interval> lives = lifetimes(step);
  const auto end = static_cast<std::int32_t>(ops.size());
  Bytes address;
  // Persistent first: see persistent_bytes().
  for (const bool persistent : {true, false}) {
    for (std::size_t s = 0; s < step.storages.size(); ++s) {
      if (step.storages[s].persistent != persistent || lives[s].last < lives[s].first) continue;
      layout.residencies.push_back({StorageId(s), Tier::device, kEntry, end, address});
      address += step.storages[s].bytes.aligned();
    }
  }
  Bytes workspace;
  for (const Op& op : ops) workspace = std::max(workspace, step.algorithms_of(op.task)[op.algorithm].workspace);
  layout.workspaces.assign(ops.size(), address);
  layout.peak = address + workspace.aligned();
  layout.bottleneck = task_name(step, largest_task(step).task);
  return layout;
}

}  // namespace

PlanResult plan_baseline(Step step, const CostModel& /*cost*/, const PlannerOptions& options) {
  std::vector<Op> ops = runs_in_order(step);
  Layout layout = lay_out_separately(step, ops);
  return finish_plan(std::move(step), std::move(ops), std::move(layout), options);
}

PlanResult plan_inplace(Step step, const CostModel& cost, const PlannerOptions& options) {
  return plan_baseline(merge_in_place(std::move(step)), cost, options);
}

}  // namespace tide
