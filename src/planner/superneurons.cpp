// All of SuperNeurons: liveness, tensors that leave and come back, recomputation, the
// tensor cache, and convolution workspaces in what is free.
#include "planner/finish.h"
#include "planner/in_place.h"
#include "planner/policies.h"
#include "planner/runtime.h"
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

Bytes moved_bytes(const PlanResult& result) {
  Bytes total;
  for (const Phase& phase : result.plan->phases)
    for (const Op& op : phase.ops)
      if (op.kind == OpKind::copy) total += phase.step->storage(op.storage).bytes;
  return total;
}

// With the cache: as far as memory is short, and no further.
PlanResult plan_cached(const Step& step, const CostModel& cost, const PlannerOptions& options) {
  const Floor floor = smallest_floor(step);
  if (options.memory && *options.memory < floor.bytes) {
    PlanResult result;
    result.floor = floor.bytes;
    result.bottleneck_task = floor.task;
    return result;
  }
  // Where everything fits there is nothing to do.
  PlannerOptions merged = options;  // results are in place already
  merged.in_place = false;
  PlanResult at_rest = plan_liveness(step, cost, merged);
  at_rest.floor = floor.bytes;
  at_rest.bottleneck_task = floor.task;
  if (at_rest.plan) return at_rest;

  const StepFacts facts(step, checkpoints_of(options));
  Draft draft = VirtualRuntime(facts, cost, *options.memory, options).run();
  PlanResult cached = finish_placed(step, std::move(draft), floor.bytes, floor.task, options);
  // An eviction rule can be unlucky: applying the techniques always may move less.
  PlanResult always = plan_always(step, cost, options);
  if (always.plan && (!cached.plan || moved_bytes(always) < moved_bytes(cached))) {
    cached = std::move(always);
    cached.floor = floor.bytes;
    cached.bottleneck_task = floor.task;
  }
  return cached;
}

}  // namespace

PlanResult plan_superneurons(Step step, const CostModel& cost, const PlannerOptions& options) {
  if (options.in_place) step = merge_in_place(std::move(step));
  if (options.cache) return plan_cached(step, cost, options);
  return plan_always(std::move(step), cost, options);
}

}  // namespace tide
