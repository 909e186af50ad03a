// Liveness, and the outputs of convolutions leave the device between the passes, always
// (SuperNeurons, section 3.3.1).
#include "planner/finish.h"
#include "planner/in_place.h"
#include "planner/policies.h"
#include "planner/techniques.h"

namespace tide {

PlanResult plan_offload(Step step, const CostModel& cost, const PlannerOptions& options) {
  if (options.in_place) step = merge_in_place(std::move(step));
  const StepFacts facts(step, paper_checkpoints(), resting_storages(step, options));
  Techniques techniques = offloading(
      facts, options.checkpoints.empty() ? paper_offloads() : std::span<const LayerKind>(options.checkpoints));
  techniques.prefetch_previous = true;
  Draft draft = apply(facts, techniques);
  return finish_draft(std::move(step), std::move(draft), cost, options);
}

}  // namespace tide
