// The default policy where it may cut the batch: the fastest plan over all sizes of sub-batches.
#include <algorithm>

#include "plan/timeline.h"
#include "planner/policies.h"
#include "planner/rounds.h"

namespace tide {
namespace {

// Keeps the faster of two plans, and the smaller floor.
void offer(PlanResult result, const CostModel& cost, PlanResult& best, double& best_seconds) {
  if (result.floor < best.floor) {
    best.floor = result.floor;
    best.bottleneck_task = result.bottleneck_task;
  }
  if (!result.plan) return;
  const double seconds = simulate(*result.plan, cost).seconds;
  if (best.plan && seconds >= best_seconds) return;
  result.floor = best.floor;
  result.bottleneck_task = best.bottleneck_task;
  best = std::move(result);
  best_seconds = seconds;
}

// A step in sub-batches of this size with unlimited memory.
double ideal_in_rounds(const Step& step, std::int64_t samples, const CostModel& cost, const PlannerOptions& options) {
  const auto rounds = static_cast<double>(step.options.batch) / static_cast<double>(samples);
  if (options.exact_batch_norm && numerics_of_rounds(step, {}) == Numerics::changed) return ideal_seconds(options.cut(samples, Part::whole), cost);
  return rounds * ideal_seconds(options.cut(samples, Part::later_round), cost);
}

}  // namespace

PlanResult plan_auto(Step step, const CostModel& cost, const PlannerOptions& options) {
  PlanResult best = plan_whole(step, cost, options);
  if (!may_cut(step, options) || !options.memory) return best;
  constexpr double kGoodEnough = 1.01;  // of the time with unlimited memory
  double best_seconds = best.plan ? simulate(*best.plan, cost).seconds : 0;
  // What is feasible does not depend on what is fastest.
  const std::int64_t batch = step.options.batch;
  PlannerOptions least = options;
  least.memory = Bytes();
  offer(plan_rounds(plan_whole, step, 1, cost, least), cost, best, best_seconds);
  if (best.plan && best_seconds <= kGoodEnough * ideal_seconds(step, cost)) return best;
  if (*options.memory < best.floor) return best;
  for (const PolicyFunction other : {plan_modnn, plan_vdnn_plus}) offer(other(step, cost, options), cost, best, best_seconds);
  // Smaller ones take less memory and more time; two in a row that gain nothing are enough.
  int worse = 0;
  std::int64_t before = batch;
  for (std::int64_t rounds = 2; rounds <= batch && worse < 2; rounds += std::max<std::int64_t>(rounds / 2, 1)) {
    const std::int64_t samples = (batch + rounds - 1) / rounds;
    if (samples == before) continue;
    before = samples;
    const double limit = best_seconds;
    if (!best.plan || ideal_in_rounds(step, samples, cost, options) < best_seconds)
      offer(plan_rounds(plan_whole, step, samples, cost, options), cost, best, best_seconds);
    worse = !best.plan || best_seconds < limit ? 0 : worse + 1;
  }
  if (!best.plan) offer(plan_rounds(plan_whole, step, 1, cost, options), cost, best, best_seconds);
  return best;
}

}  // namespace tide
