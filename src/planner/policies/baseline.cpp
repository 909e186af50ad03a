// The naive strategy: every storage has its own memory for the whole step.
#include "planner/policies/baseline.h"

#include "planner/finish/floor.h"
#include "planner/finish/layout.h"
#include "planner/finish/lifetimes.h"
#include "planner/policy.h"

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
  add_workspace(step, ops, address, layout);
  return layout;
}

}  // namespace

PlanResult plan_baseline(Step step, const CostModel& /*cost*/, const PlanningContext& context) {
  std::vector<Op> ops = runs_in_order(step);
  Layout layout = lay_out_separately(step, ops);
  return finish_layout(std::move(step), std::move(ops), std::move(layout), context);
}

Policy baseline_policy() {
  return {.name = "baseline",
          .description = "every tensor has memory of its own for the whole step",
          .plan = plan_baseline,
          .rank = 1,
          .moves = false};
}

}  // namespace tide
