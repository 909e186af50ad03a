// All of SuperNeurons: liveness, tensors that leave and come back, recomputation, the
// tensor cache, and convolution workspaces in what is free.
#include "planner/finish.h"
#include "planner/in_place.h"
#include "planner/policies.h"
#include "planner/techniques.h"

namespace tide {
namespace {

std::span<const LayerKind> checkpoints_of(const PlannerOptions& options) {
  return options.checkpoints.empty() ? paper_checkpoints() : std::span<const LayerKind>(options.checkpoints);
}

// Without the cache, every technique is applied whether memory is short or not.
PlanResult plan_always(Step step, const CostModel& cost, const PlannerOptions& options) {
  const StepFacts facts(step, checkpoints_of(options));
  Techniques techniques = offloading(facts, checkpoints_of(options));
  add_recomputation(facts, options.recompute, techniques);
  Draft draft = apply(facts, techniques);
  return finish_draft(std::move(step), std::move(draft), cost, options);
}

}  // namespace

PlanResult plan_superneurons(Step step, const CostModel& cost, const PlannerOptions& options) {
  if (options.in_place) step = merge_in_place(std::move(step));
  return plan_always(std::move(step), cost, options);
}

}  // namespace tide
