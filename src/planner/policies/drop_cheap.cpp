// Results of cheap layers are dropped and run again from what convolutions and matrix products
// made, which is kept (sublinear paper, section 4.2).
#include <algorithm>

#include "network/kind.h"
#include "planner/policy.h"
#include "planner/replay/mirror_search.h"

namespace tide {
namespace {

// Drops what can be made again from things that the backward pass needs anyway. An addition or
// concatenation of such is dropped only where none of its sources goes back to another: along the
// shortcuts of a residual network the first one asked for would bring back all the others.
MirrorCounts cheap_counts(const Step& step) {
  const std::vector<LayerKind> dear = kinds_with(&KindDescription::dear);
  const StepFacts facts(step, dear);
  MirrorCounts counts(step.ordered_tasks, 0);
  std::vector<bool> behind_join(step.tensors.size(),
                                false);  // dropped, and a dropped join is among what it is made from
  for (std::size_t t = 0; t < static_cast<std::size_t>(facts.first_backward()); ++t) {
    const auto operands = step.operands_of(TaskId(t));
    const auto reads =
        std::count_if(operands.begin(), operands.end(), [](const Operand& operand) { return operand.role == Role::x; });
    const bool after = std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
      return operand.access == Access::read && behind_join[operand.tensor.index()];
    });
    const bool droppable = std::all_of(operands.begin(), operands.end(), [&](const Operand& operand) {
      return operand.role != Role::y || facts.droppable(operand.tensor);
    });
    if (facts.is_checkpoint(step.layer_kind(step.tasks[t])) || !droppable || (reads > 1 && after)) continue;
    counts[t] = 1;
    for (const Operand& operand : operands)
      if (operand.access != Access::read) behind_join[operand.tensor.index()] = after || reads > 1;
  }
  return counts;
}

PlanResult plan_drop_cheap(Step step, const CostModel& cost, const PlanningContext& context) {
  MirrorSearch search(std::move(step), cost, context);
  search.offer(search.counts(0));
  search.offer(cheap_counts(search.step()));
  return std::move(search).take();
}

}  // namespace

Policy drop_cheap_policy() {
  return {.name = "drop-cheap",
          .description = "cheap layers are dropped and run again, convolutions and products are kept",
          .plan = plan_drop_cheap,
          .rank = 11,
          .moves = false};
}

}  // namespace tide
