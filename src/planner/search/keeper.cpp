#include "planner/search/keeper.h"

#include "plan/checker.h"
#include "plan/timeline.h"

namespace tide {

void settle(PlanResult& result, const CostModel& cost) {
  if (!result.plan || result.seconds) return;
#ifndef NDEBUG
  // A round alone is no plan yet: it is checked with the others.
  const bool is_round =
      result.plan->phases.size() == 1 && result.plan->phases.front().step->options.part != Part::whole;
  if (!is_round) {
    result.plan->numerics = numerics_of(*result.plan);
    require_valid(*result.plan);
  }
#endif
  result.seconds = simulate(*result.plan, cost).seconds;
}

void Keeper::consider_floor(Bytes floor, const std::string& bottleneck) {
  Bytes& least = best_.floor[Tier::device];
  if (floor.is_zero() || (floor >= least && !least.is_zero())) return;
  least = floor;
  best_.bottleneck_task = bottleneck;
}

bool Keeper::keep(std::string_view name, PlanResult result, double took) {
  settle(result, cost_);
  std::vector<Trial> within = std::move(result.trials);
  trials_.push_back({std::string(name), 0, result.seconds, took, false});
  const std::size_t trial = trials_.size() - 1;
  for (Trial& each : within) {
    ++each.depth;
    trials_.push_back(std::move(each));
  }
  const bool first = !std::exchange(any_, true);
  const bool of_all = taste_.failure == Taste::Failure::least_of_all;
  if (of_all) consider_floor(result.floor[Tier::device], result.bottleneck_task);
  if (!result.plan) {
    if (first && !of_all)
      best_ = std::move(result);
    else if (!best_.plan)
      note_failure(std::move(result));
    return false;
  }
  double seconds = *result.seconds;
  if (taste_.price_of_copies > 0) seconds += taste_.price_of_copies * copy_seconds(*result.plan);
  if (best_.plan && seconds >= seconds_) return false;
  seconds_ = seconds;
  replace(std::move(result));
  for (Trial& each : trials_) each.kept = each.kept && each.depth > 0;
  trials_[trial].kept = true;
  return true;
}

void Keeper::note_failure(PlanResult result) {
  switch (taste_.failure) {
    case Taste::Failure::smallest_floor:
      if (result.floor[Tier::device] < best_.floor[Tier::device]) best_ = std::move(result);
      return;
    case Taste::Failure::least_of_all: break;
  }
  // Why there is none, as the least demanding sees it: some of those tried fail on the device anyway.
  const bool better = best_.short_of == Tier::device || result.floor[Tier::host] < best_.floor[Tier::host];
  if (result.short_of == Tier::device || !better) return;
  best_.short_of = result.short_of;
  for (const TierRow& row : kTierTable)
    if (row.tier != Tier::device) best_.floor[row.tier] = result.floor[row.tier];
}

void Keeper::replace(PlanResult result) {
  const Bytes floor = best_.floor[Tier::device];
  std::string bottleneck = std::move(best_.bottleneck_task);
  best_ = std::move(result);
  if (taste_.failure != Taste::Failure::least_of_all) return;
  best_.floor[Tier::device] = floor;
  best_.bottleneck_task = std::move(bottleneck);
}

PlanResult Keeper::take() && {
  best_.trials = std::move(trials_);
  return std::move(best_);
}

double Keeper::copy_seconds(const Plan& plan) const {
  double seconds = 0;
  for (const Phase& phase : plan.phases)
    for (const Op& op : phase.ops)
      if (op.is_copy())
        seconds += phase.repeat *
                   cost_.copy_seconds(phase.step->storage(op.copy().storage).bytes, op.copy().from, op.copy().to);
  return seconds;
}

}  // namespace tide
