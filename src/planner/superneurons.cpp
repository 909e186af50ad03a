// All of SuperNeurons: liveness, tensors that leave and come back, recomputation, the
// tensor cache, and convolution workspaces in what is free.
#include "plan/timeline.h"
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
  const StepFacts facts(step, checkpoints_of(options), resting_storages(step, options));
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
  const Floor floor = smallest_floor(step, resting_storages(step, options));
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
  if (!options.memory) return at_rest;
  // Unless memory is so short that only slow algorithms have room for their workspaces.
  constexpr double kWorthMoving = 1.05;
  if (at_rest.plan && simulate(*at_rest.plan, cost).seconds <= kWorthMoving * ideal_seconds(step, cost)) return at_rest;

  const StepFacts facts(step, checkpoints_of(options), resting_storages(step, options));
  std::vector<PlanResult> found;
  const auto keep = [&](PlanResult result) {
    result.floor = floor.bytes;
    result.bottleneck_task = floor.task;
    found.push_back(std::move(result));
  };
  const bool rests = at_rest.plan.has_value();
  if (rests) keep(std::move(at_rest));
  // As the runtime places it. For a very long step, one way has to do.
  constexpr std::uint32_t kManyTasks = 10'000;
  const bool hurried = step.ordered_tasks > kManyTasks;
  for (const Prefetch prefetch : {Prefetch::in_time, Prefetch::at_once}) {
    keep(finish_placed(step, VirtualRuntime(facts, cost, *options.memory, options, prefetch).run(), floor.bytes,
                       floor.task, options));
    if (hurried && found.back().plan) return std::move(found.back());
  }
  // What the runtime moves, placed anew with all of it known: copies get more time. Packing
  // may lose a little, so the runtime is given a little less.
  for (const std::int64_t percent : {100, 97, 94, 90}) {
    const Bytes share(options.memory->count() / 100 * percent);
    if (share < floor.bytes) break;
    PlanResult repacked =
        finish_draft(step, VirtualRuntime(facts, cost, share, options, Prefetch::never).run(), cost, options);
    const bool packed = repacked.plan.has_value();
    if (packed) keep(std::move(repacked));
    if (packed) break;
  }
  // The cache may be unlucky; it never moves more than the techniques applied always.
  PlanResult always = plan_always(step, cost, options);
  std::optional<Bytes> limit;
  if (always.plan) {
    limit = moved_bytes(always);
    keep(std::move(always));
  }
  const PlanResult* best = nullptr;
  double best_seconds = 0;
  for (const PlanResult& result : found) {
    if (!result.plan || (limit && moved_bytes(result) > *limit)) continue;
    const double seconds = simulate(*result.plan, cost).seconds;
    // Nothing moves for a few percent.
    if (best != nullptr && seconds * (rests && best == &found.front() ? kWorthMoving : 1) >= best_seconds) continue;
    best = &result;
    best_seconds = seconds;
  }
  return best != nullptr ? *best : found.front();
}

}  // namespace

PlanResult plan_superneurons(Step step, const CostModel& cost, const PlannerOptions& options) {
  if (options.in_place) step = merge_in_place(std::move(step));
  if (options.cache) return plan_cached(step, cost, options);
  return plan_always(std::move(step), cost, options);
}

}  // namespace tide
