// moDNN (X. Chen et al., 2018): sub-batches as large as memory allows (modnn_batch.h), each worked
// through by Algorithm 1 (modnn_schedule.h).
#include <array>

#include "cost/memoized.h"
#include "plan/timeline.h"
#include "planner/finish.h"
#include "planner/in_place.h"
#include "planner/modnn_schedule.h"
#include "planner/policies.h"
#include "planner/runtime.h"

namespace tide {
namespace {

// The paper does not say how it guesses; the schedule costs little, so several guesses are tried.
constexpr std::array<ModnnGuess, 4> kGuesses{{{1, false}, {1, true}, {2, false}, {2, true}}};
constexpr double kGoodEnough = 1.001;  // of the time with unlimited memory

// Copies of both directions share a link: each waits for the one before it.
void take_turns(Phase& phase) {
  std::int32_t before = -1;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(phase.ops.size()); ++i) {
    Op& op = phase.ops[static_cast<std::size_t>(i)];
    if (op.kind != OpKind::copy) continue;
    if (before >= 0 && phase.ops[static_cast<std::size_t>(before)].lane != op.lane) op.waits.push_back(before);
    before = i;
  }
}

}  // namespace

PlanResult plan_modnn(Step step, const CostModel& model, const PlannerOptions& options) {
  const MemoizedCost cost(model, step);
  if (options.in_place) step = merge_in_place(std::move(step));
  const Floor floor = smallest_floor(step);
  PlannerOptions merged = options;  // results are in place already
  merged.in_place = false;
  // Where everything fits there is nothing to do.
  PlanResult best = plan_liveness(step, cost, merged);
  best.floor = floor.bytes;
  best.bottleneck_task = floor.task;
  if (!options.memory || *options.memory < floor.bytes) return best;
  double seconds = best.plan ? simulate(*best.plan, cost).seconds : 0;
  if (best.plan && seconds <= kGoodEnough * ideal_seconds(step, cost)) return best;
  const StepFacts facts(step, {});
  for (const ModnnGuess& guess : kGuesses) {
    PlanResult result = finish_placed(step, ModnnSchedule(facts, cost, *options.memory, options.one_lane, guess).run(),
                                      floor.bytes, floor.task, options);
    if (!result.plan) {
      const bool better = best.short_of == Tier::device || result.host_floor < best.host_floor;
      if (!best.plan && better) best = std::move(result);
      continue;
    }
    if (options.one_lane) take_turns(result.plan->phases.front());
    const double found = simulate(*result.plan, cost).seconds;
    if (best.plan && found >= seconds) continue;
    best = std::move(result);
    seconds = found;
  }
  return best;
}

}  // namespace tide
