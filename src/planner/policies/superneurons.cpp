// All of SuperNeurons: liveness, tensors that leave and come back, recomputation, the
// tensor cache, and convolution workspaces in what is free.
#include "planner/policies/superneurons.h"

#include <array>
#include <cmath>
#include <map>

#include "base/names.h"
#include "plan/timeline.h"
#include "planner/draft/in_place.h"
#include "planner/finish/finish.h"
#include "planner/finish/floor.h"
#include "planner/policies/liveness.h"
#include "planner/policy.h"
#include "planner/replay/techniques.h"
#include "planner/runtime/runtime.h"
#include "planner/search/enough.h"
#include "planner/search/keeper.h"
#include "planner/search/ladder.h"

namespace tide {
namespace {

std::span<const LayerKind> checkpoints_of(const PlanningContext& context) {
  const std::vector<LayerKind>& asked = context.policy.get<SuperneuronsOptions>().checkpoints;
  return asked.empty() ? paper_checkpoints() : asked;
}

Draft draft_always(const StepFacts& facts, const PlanningContext& context) {
  Techniques techniques = offloading(facts, checkpoints_of(context));
  add_recomputation(facts, context.policy.get<SuperneuronsOptions>().recompute, techniques);
  return apply(facts, techniques);
}

// Without the cache, every technique is applied whether memory is short or not.
PlanResult plan_always(const Step& step, const CostModel& cost, const PlanningContext& context) {
  Draft draft = draft_always(StepFacts(step, checkpoints_of(context), resting_storages(step, context)), context);
  return finish_draft(step, std::move(draft), cost, context);
}

Bytes moved_bytes(const PlanResult& result) {
  Bytes total;
  for (const Phase& phase : result.plan->phases)
    for (const Op& op : phase.ops)
      if (op.is_copy()) total += phase.step->storage(op.copy().storage).bytes;
  return total;
}

// With the cache: as far as memory is short, and no further.
class CachedPlans {
 public:
  CachedPlans(const Step& step, const CostModel& cost, const PlanningContext& context)
      : step_(step), cost_(cost), context_(context), floor_(smallest_floor(step, resting_storages(step, context))) {}

  PlanResult plan() {
    const std::optional<Bytes>& memory = context_.memory[Tier::device];
    if (memory && *memory < floor_.bytes) return below(floor_);
    // Where everything fits there is nothing to do, unless memory is so short that only slow algorithms have room for
    // their workspaces.
    PlanResult at_rest = rest();
    if (!memory) return at_rest;
    settle(at_rest, cost_);
    if (at_rest.plan && *at_rest.seconds <= enough::kWorthMoving * ideal_seconds(step_, cost_)) return at_rest;
    rests_ = at_rest.plan.has_value();
    const double beaten = context_.seconds_to_beat;
    const bool slow = !rests_ || *at_rest.seconds >= beaten;
    if (rests_) keep(std::move(at_rest));
    const StepFacts facts(step_, checkpoints_of(context_), resting_storages(step_, context_));
    if (slow && std::isfinite(beaten) && !can_be_faster(facts, beaten)) return below(floor_);
    if (std::optional<PlanResult> enough = run_as_placed(facts)) return *std::move(enough);
    run_and_repack(facts);
    // The cache may be unlucky; it never moves more than the techniques applied always.
    PlanResult always = plan_always(step_, cost_, context_);
    std::optional<Bytes> limit;
    if (always.plan) {
      limit = moved_bytes(always);
      keep(std::move(always));
    }
    return fastest_within(limit);
  }

 private:
  PlanResult rest() const {
    PlanningContext merged = context_;  // results are in place already
    merged.in_place = false;
    return with_floor(plan_liveness(step_, cost_, merged));
  }

  // Whether anything that is tried below can be.
  [[nodiscard]] bool can_be_faster(const StepFacts& facts, double seconds) {
    const Bytes memory = *context_.memory[Tier::device];
    const auto can_be = [&](const Draft& draft) { return seconds_at_least(step_, cost_, draft, memory) < seconds; };
    for (const Prefetch prefetch : {Prefetch::in_time, Prefetch::at_once})
      if (can_be(run(facts, memory, prefetch))) return true;
    for (const std::int64_t percent : ladder::kRepacked) {
      const Bytes share = percent_of(memory, percent);
      if (share >= floor_.bytes && can_be(run(facts, share, Prefetch::never))) return true;
    }
    return can_be(draft_always(facts, context_));
  }

  // As the runtime places it. For a very long step, one way has to do.
  std::optional<PlanResult> run_as_placed(const StepFacts& facts) {
    constexpr std::uint32_t kManyTasks = 10'000;
    const bool hurried = step_.ordered_tasks > kManyTasks;
    for (const Prefetch prefetch : {Prefetch::in_time, Prefetch::at_once}) {
      keep(finish_placed(step_, run(facts, *context_.memory[Tier::device], prefetch), floor_, cost_, context_));
      const PlanResult& last = found_.back();
      if (hurried && (last.plan || last.short_of != Tier::device)) return std::move(found_.back());
    }
    return std::nullopt;
  }

  // What the runtime moves, placed anew with all of it known: copies get more time.
  void run_and_repack(const StepFacts& facts) {
    aim_lower(ladder::kRepacked, [&](std::int64_t percent) {
      const Bytes share = percent_of(*context_.memory[Tier::device], percent);
      if (share < floor_.bytes) return true;
      PlanResult repacked = finish_quickly(step_, run(facts, share, Prefetch::never), cost_, context_);
      const bool packed = repacked.plan.has_value();
      if (packed) keep(std::move(repacked));
      return packed;
    });
  }

  const Draft& run(const StepFacts& facts, Bytes memory, Prefetch prefetch) {
    const auto [it, added] = runs_.try_emplace({memory, prefetch});
    const auto& options = context_.policy.get<SuperneuronsOptions>();
    if (added)
      it->second = VirtualRuntime(facts, cost_, memory, {options.recompute, options.replacement, prefetch}).run();
    return it->second;
  }

  PlanResult fastest_within(const std::optional<Bytes>& limit) {
    PlanResult* best = nullptr;
    for (PlanResult& result : found_) {
      if (!result.plan || (limit && moved_bytes(result) > *limit)) continue;
      settle(result, cost_);
      // Nothing moves for a few percent.
      const double worth = rests_ && best == &found_.front() ? enough::kWorthMoving : 1;
      if (best != nullptr && *result.seconds * worth >= *best->seconds) continue;
      best = &result;
    }
    return std::move(best != nullptr ? *best : found_.front());
  }

  PlanResult with_floor(PlanResult result) const {
    result.floor[Tier::device] = floor_.bytes;
    result.bottleneck_task = floor_.task;
    return result;
  }
  void keep(PlanResult result) { found_.push_back(with_floor(std::move(result))); }

  const Step& step_;
  const CostModel& cost_;
  const PlanningContext& context_;
  Floor floor_;
  bool rests_ = false;  // whether it fits with nothing moved
  std::vector<PlanResult> found_;
  std::map<std::pair<Bytes, Prefetch>, Draft> runs_;
};

constexpr std::array kSuperneuronsFlags{
    PolicyOption{"--recompute", "superneurons: none, speed, memory or cost-aware", "cost-aware",
                 PolicyOption::Form::value,
                 [](PolicyOptions& options, const std::string& text) {
                   options.set<SuperneuronsOptions>().recompute =
                       find_name<Recompute>({"none", "speed", "memory", "cost-aware"}, text, "recompute strategy");
                 }},
    PolicyOption{"--cache", "superneurons: on (move and recompute only where memory is short) or off (always)", "on",
                 PolicyOption::Form::value,
                 [](PolicyOptions& options, const std::string& text) {
                   if (text != "on" && text != "off") throw Error("--cache is on or off, not '{}'", text);
                   options.set<SuperneuronsOptions>().cache = text == "on";
                 }},
    PolicyOption{"--replacement", "superneurons: whom the cache evicts first: lru, fifo, largest or next-use",
                 "next-use", PolicyOption::Form::value,
                 [](PolicyOptions& options, const std::string& text) {
                   options.set<SuperneuronsOptions>().replacement =
                       find_name<Replacement>({"lru", "fifo", "largest", "next-use"}, text, "replacement rule");
                 }},
    PolicyOption{"--checkpoints",
                 "offload, superneurons: layer kinds whose outputs move instead of being dropped, such as "
                 "convolution,add (the paper's by default)",
                 "", PolicyOption::Form::list,
                 [](PolicyOptions& options, const std::string& text) {
                   const std::optional<LayerKind> kind = kind_from_name(text);
                   if (!kind)
                     throw Error("--checkpoints: there is no layer kind '{}'; see tide summary for those of a model",
                                 text);
                   options.set<SuperneuronsOptions>().checkpoints.push_back(*kind);
                 }},
};

}  // namespace

std::string_view recompute_name(Recompute recompute) {
  constexpr std::array<std::string_view, 4> kNames{"none", "speed", "memory", "cost-aware"};
  return kNames[static_cast<std::size_t>(recompute)];
}

PlanResult plan_superneurons(Step step, const CostModel& cost, const PlanningContext& context) {
  if (context.in_place) step = merge_in_place(std::move(step));
  if (context.policy.get<SuperneuronsOptions>().cache) return CachedPlans(step, cost, context).plan();
  return plan_always(step, cost, context);
}

Policy superneurons_policy() {
  return {.name = "superneurons",
          .description = "offload, cache, recomputation and workspaces, as far as memory is short",
          .plan = plan_superneurons,
          .rank = 6,
          .rests_parameters = true,
          .floor_grows = [](const PolicyOptions& options) { return options.get<SuperneuronsOptions>().cache; },
          .options = kSuperneuronsFlags};
}

}  // namespace tide
