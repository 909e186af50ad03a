// Liveness, and the outputs of convolutions leave the device between the passes, always
// (SuperNeurons, section 3.3.1).
#include "planner/draft/in_place.h"
#include "planner/finish/finish.h"
#include "planner/policies/superneurons.h"
#include "planner/policy.h"
#include "planner/replay/techniques.h"

namespace tide {
namespace {

PlanResult plan_offload(Step step, const CostModel& cost, const PlanningContext& context) {
  if (context.in_place) step = merge_in_place(std::move(step));
  const StepFacts facts(step, paper_checkpoints(), resting_storages(step, context));
  const std::vector<LayerKind>& asked = context.policy.get<SuperneuronsOptions>().checkpoints;
  Techniques techniques = offloading(facts, asked.empty() ? paper_offloads() : asked);
  techniques.prefetch_previous = true;
  Draft draft = apply(facts, techniques);
  return finish_draft(step, std::move(draft), cost, context);
}

}  // namespace

Policy offload_policy() {
  return {.name = "offload",
          .description = "liveness, and outputs of convolutions leave the device between the passes",
          .plan = plan_offload,
          .rank = 5,
          .rests_parameters = true};
}

}  // namespace tide
