#include "planner/finish/layout.h"

#include <algorithm>

#include "planner/finish/floor.h"
#include "planner/finish/waits.h"

namespace tide {

void add_workspace(const Step& step, const std::vector<Op>& ops, Bytes end, Layout& layout) {
  Bytes largest;
  for (const Op& op : ops) largest = std::max(largest, workspace_bytes(step, op.run()));
  layout.workspace = end;
  layout.peak = end + largest.aligned();
  layout.bottleneck = task_name(step, largest_task(step).task);
}

PlanResult finish_layout(Step step, std::vector<Op> ops, Layout layout, const PlanningContext& context) {
  PlanResult result = below({layout.peak, std::move(layout.bottleneck)});
  const std::optional<Bytes>& memory = context.memory[Tier::device];
  if (memory && layout.peak > *memory) return result;
  for (Op& op : ops) op.run().workspace = layout.workspace;
  Phase phase;
  phase.step = std::make_shared<const Step>(std::move(step));
  phase.ops = std::move(ops);
  phase.residencies = std::move(layout.residencies);
  result.plan.emplace();
  add_waits(phase);
  result.plan->phases.push_back(std::move(phase));
  return result;
}

}  // namespace tide
