// Liveness, and the outputs of convolutions leave the device between the passes, always
// (SuperNeurons, section 3.3.1).
#include "planner/draft/in_place.h"
#include "planner/finish/finish.h"
#include "planner/policies/superneurons.h"
#include "planner/policy.h"
#include "planner/replay/techniques.h"

namespace tide {
namespace {

Draft draft_offload(const Step& step, const PlanningContext& context) {
  const StepFacts facts(step, paper_checkpoints(), resting_storages(step, context));
  const std::vector<LayerKind>& asked = context.policy.get<SuperneuronsOptions>().checkpoints;
  Techniques techniques = offloading(facts, asked.empty() ? paper_offloads() : asked);
  techniques.prefetch_previous = true;
  return apply(facts, techniques);
}

PlanResult plan_offload(Step step, const CostModel& cost, const PlanningContext& context) {
  if (context.in_place) step = merge_in_place(std::move(step));
  Draft draft = draft_offload(step, context);
  return finish_draft(step, std::move(draft), cost, context);
}

double offload_at_least(const Step& step, const CostModel& cost, const PlanningContext& context) {
  const Step merged = context.in_place ? merge_in_place(step) : step;
  return seconds_at_least(merged, cost, draft_offload(merged, context), context.memory[Tier::device]);
}

}  // namespace

Policy offload_policy() {
  return {.name = "offload",
          .description = "liveness, and outputs of convolutions leave the device between the passes",
          .plan = plan_offload,
          .rank = 5,
          .seconds_at_least = offload_at_least,
          .rests_parameters = true};
}

}  // namespace tide
