#include "planner/ranks/corrections.h"

#include <algorithm>

#include "planner/vdnn/turns.h"

namespace tide {
namespace {

bool is_route(const Op& op, Tier from, Tier to) { return op.is_copy() && op.copy().from == from && op.copy().to == to; }

bool uses(const Step& step, const Op& op, StorageId storage) {
  return op.is_run() && std::ranges::any_of(step.operands_of(op.run().task), [&](const Operand& operand) {
           return step.tensor(operand.tensor).storage == storage;
         });
}

// By turn: how long it was, from its first op to the end of its last.
std::vector<double> turn_seconds(const Phase& phase, const Timeline& measured, const Turns& turns) {
  std::vector<double> first(turns.count(), -1), last(turns.count(), -1), lengths;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    if (phase.ops[i].lane != Lane::compute) continue;
    const std::size_t turn = turns.of(phase.ops[i].run().task);
    if (first[turn] < 0) first[turn] = measured.spans[i].start;
    last[turn] = measured.spans[i].end;
  }
  for (std::size_t t = 0; t < turns.count(); ++t) lengths.push_back(last[t] - first[t]);
  return lengths;
}

}  // namespace

std::vector<SwapInTiming> swap_in_timings(const Plan& plan, const Timeline& measured) {
  const Phase& phase = plan.phases.front();
  const std::size_t count = phase.ops.size();
  std::vector<SwapInTiming> timings;
  for (std::size_t out = 0; out < count; ++out) {
    if (!is_route(phase.ops[out], Tier::device, Tier::host)) continue;
    const StorageId storage = phase.ops[out].copy().storage;
    SwapInTiming& timing = timings.emplace_back();
    std::size_t in = out + 1;
    while (in < count &&
           !(is_route(phase.ops[in], Tier::host, Tier::device) && phase.ops[in].copy().storage == storage))
      ++in;
    std::size_t user = in;
    while (user < count && !uses(*phase.step, phase.ops[user], storage)) ++user;
    if (user == count) continue;  // it does not come back
    timing.copy = in;
    timing.needed_by = user;
    const Span& copy = measured.spans[in];
    double ready = 0;  // when nothing but the copy held the op up
    for (std::size_t i = 0; i < user; ++i) {
      const bool before =
          phase.ops[i].lane == phase.ops[user].lane ||
          std::ranges::find(phase.ops[user].waits, static_cast<std::int32_t>(i)) != phase.ops[user].waits.end();
      if (i != in && before) ready = std::max(ready, measured.spans[i].end);
    }
    timing.waited = std::max(0.0, copy.end - ready);
    timing.spare = std::max(0.0, measured.spans[user].start - copy.end);
    // What else it waited for: the copy before it on its lane, its way out, memory that somebody else had.
    const auto runs_before = [&](std::size_t i) { return phase.ops[i].lane == Lane::compute; };
    double trigger = 0, others = 0;
    for (std::size_t i = 0; i < in; ++i) {
      const bool waits =
          std::ranges::find(phase.ops[in].waits, static_cast<std::int32_t>(i)) != phase.ops[in].waits.end();
      if (waits && runs_before(i)) trigger = std::max(trigger, measured.spans[i].end);
      if ((waits && !runs_before(i)) || phase.ops[i].lane == phase.ops[in].lane)
        others = std::max(others, measured.spans[i].end);
    }
    timing.at_once = trigger >= others;
  }
  return timings;
}

TriggerOptions corrected_triggers(const Plan& plan, const Timeline& measured, const TriggerOptions& triggers) {
  const Phase& phase = plan.phases.front();
  const Turns turns(*phase.step);
  const std::vector<double> lengths = turn_seconds(phase, measured, turns);
  const std::vector<SwapInTiming> timings = swap_in_timings(plan, measured);
  const double least = kOfNoMatter * measured.seconds;
  TriggerOptions changed = triggers;
  changed.early->resize(timings.size(), 0);
  for (std::size_t k = 0; k < timings.size(); ++k) {
    std::int32_t& early = (*changed.early)[k];
    const SwapInTiming& timing = timings[k];
    if (timing.copy == 0 || early == kNoTrigger) continue;
    const std::size_t needed = turns.of(phase.ops[timing.needed_by].run().task);
    // The turn that the copy comes before; beyond the first there is nothing.
    std::size_t turn = needed - std::min(needed, static_cast<std::size_t>(early));
    if (timing.waited > least && timing.at_once) {
      for (double gained = 0; gained < timing.waited && turn > 0; gained += lengths[turn]) {
        --turn;
        ++early;
      }
    } else if (timing.waited <= least && timing.spare > least) {
      for (double lost = lengths[turn]; lost <= timing.spare / 2 && turn < needed; lost += lengths[turn]) {
        ++turn;
        --early;
      }
    }
  }
  return changed;
}

TriggersFound apply_corrections(const PlanTriggers& plan, const TriggerOptions& now, const TriggerOptions& wanted) {
  constexpr std::size_t kMostTried = 32;
  TriggersFound found{.triggers = wanted, .result = plan(wanted)};
  if (found.result.plan) return found;
  found.triggers = now;
  std::vector<std::int32_t>& early = *found.triggers.early;
  early.resize(wanted.early->size(), 0);
  std::vector<std::size_t> moved;
  for (std::size_t k = 0; k < early.size(); ++k)
    if (early[k] != (*wanted.early)[k]) moved.push_back(k);
  std::ranges::stable_sort(moved, {}, [&](std::size_t k) { return (*wanted.early)[k] > early[k]; });
  std::size_t tried = 0;
  for (const std::size_t k : moved) {
    const std::int32_t before = early[k];
    for (std::int32_t move = (*wanted.early)[k] - before; move != 0 && tried < kMostTried; move /= 2, ++tried) {
      early[k] = before + move;
      if (PlanResult one = plan(found.triggers); one.plan) {
        found.result = std::move(one);
        break;
      }
      early[k] = before;
    }
  }
  return found;
}

}  // namespace tide
