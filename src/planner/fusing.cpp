#include "planner/fusing.h"

#include "plan/timeline.h"

namespace tide {

void StepChoice::apply_to(StepOptions& options) const {
  options.fuse_limit = fuse_limit;
  options.part = part;
  if (samples == 0) return;
  (part == Part::whole ? options.sub_batch : options.batch) = samples;
}

std::vector<Bytes> fuse_limits(const std::optional<Bytes>& memory, DataType activations) {
  if (!memory || activations != DataType::f32) return {Bytes()};
  return {Bytes(), Bytes(memory->count() / 3), Bytes(memory->count() / 6)};
}

PlanResult make_fused_plan(const Policy& policy, const BuildStep& build, const CostModel& cost,
                           PlannerOptions options) {
  Step whole = build({});
  Bytes limit;
  options.cut = [&](std::int64_t samples, Part part) { return build({limit, samples, part}); };
  if (!options.memory || !whole.options.fuse) return make_plan(policy, std::move(whole), cost, options);
  std::optional<PlanResult> best;
  double best_seconds = 0, seconds_planning = 0, seconds_checking = 0;
  constexpr double kGoodEnough = 1.1;  // of the time with unlimited memory
  const double enough = kGoodEnough * ideal_seconds(whole, cost);
  std::size_t tasks = 0;  // of the step before: the same number is the same step
  for (const Bytes tried : fuse_limits(options.memory, whole.options.activations)) {
    limit = tried;
    if (best && best->plan && best_seconds <= enough) break;
    // Where the batch is cut within the step nothing is fused.
    if (best && best->plan && best->plan->phases.front().step->options.sub_batch > 0) break;
    Step step = limit.is_zero() ? whole : build({limit});
    if (step.tasks.size() == tasks) continue;
    tasks = step.tasks.size();
    PlanResult result = make_plan(policy, std::move(step), cost, options);
    seconds_planning += result.plan_seconds;
    seconds_checking += result.check_seconds;
    const double seconds = result.plan ? simulate(*result.plan, cost).seconds : 0;
    const bool better =
        !best || (result.plan ? !best->plan || seconds < best_seconds : !best->plan && result.floor < best->floor);
    if (!better) continue;
    best = std::move(result);
    best_seconds = seconds;
  }
  best->plan_seconds = seconds_planning;
  best->check_seconds = seconds_checking;
  return std::move(*best);
}

LowerBound fused_lower_bound(const BuildStep& build, const CostModel& cost, const PlannerOptions& options) {
  const Step whole = build({});
  LowerBound least = lower_bound(whole, cost, options);
  if (!options.memory || !whole.options.fuse) return least;
  std::size_t tasks = whole.tasks.size();
  for (const Bytes limit : fuse_limits(options.memory, whole.options.activations)) {
    const Step step = build({limit});
    if (step.tasks.size() == tasks) continue;
    tasks = step.tasks.size();
    if (lower_bound(step, cost, {}).seconds >= least.seconds) continue;
    const LowerBound other = lower_bound(step, cost, options);
    if (other.seconds < least.seconds) least = other;
  }
  return least;
}

}  // namespace tide
