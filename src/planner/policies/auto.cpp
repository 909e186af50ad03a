// The default: plans in every way there is and keeps the plan that the simulator finds fastest.
//
// Which ways are tried is a function of the step and of the budget alone. What is known to be faster already
// (seconds_to_beat) only leaves out what is proved not to beat it. So whatever is tried at a budget is tried, or proved
// to be slower, for every larger budget that is planned on the same rungs (search/rungs.h).
#include <algorithm>
#include <ranges>
#include <set>

#include "cost/memoized.h"
#include "plan/timeline.h"
#include "planner/bound/excess.h"
#include "planner/draft/in_place.h"
#include "planner/finish/finish.h"
#include "planner/finish/lifetimes.h"
#include "planner/joint/attempts.h"
#include "planner/leaving.h"
#include "planner/policies/liveness.h"
#include "planner/policies/superneurons.h"
#include "planner/policy.h"
#include "planner/runtime/runtime.h"
#include "planner/search/keeper.h"
#include "planner/search/ladder.h"
#include "planner/search/rounds.h"

namespace tide {
namespace {

// What does not depend on the device's budget.
class KnownStep {
 public:
  KnownStep(Step step, const CostModel& model, const PlanningContext& context)
      : apart_(std::move(step)),
        cost_(model, apart_),
        merged_(context.in_place ? merge_in_place(apart_) : apart_),
        floor_(smallest_floor(merged_, resting_storages(merged_, context))),
        excess_(context.excess != nullptr ? *context.excess : Excess(apart_, cost_, context)) {}
  KnownStep(const KnownStep&) = delete;
  KnownStep& operator=(const KnownStep&) = delete;

  [[nodiscard]] const Step& apart() const { return apart_; }
  [[nodiscard]] const Step& merged() const { return merged_; }
  [[nodiscard]] const CostModel& cost() const { return cost_; }
  [[nodiscard]] const Floor& floor() const { return floor_; }
  [[nodiscard]] const Excess& excess() const { return excess_; }

  [[nodiscard]] Bytes liveness_floor(PlanningContext context) {
    context.memory[Tier::device].reset();
    if (liveness_floor_.is_zero()) liveness_floor_ = plan_liveness(apart_, cost_, context).floor[Tier::device];
    return liveness_floor_;
  }
  [[nodiscard]] const StepFacts& facts(const PlanningContext& context) {
    if (!facts_) facts_.emplace(merged_, std::span<const LayerKind>(), resting_storages(merged_, context));
    return *facts_;
  }
  // Tensors that bound segments, by how long these are.
  [[nodiscard]] const std::vector<std::vector<bool>>& heads(const PlanningContext& context) {
    if (!heads_.empty()) return heads_;
    const Segments segments(facts(context));
    const std::int64_t balanced = segments.balanced();
    heads_ = {segments.heads(balanced)};
    if (!is_large(merged_)) heads_.push_back(segments.heads(4 * balanced));
    return heads_;
  }
  // Drafts for a rung: all above it are gone through.
  [[nodiscard]] std::span<const Draft> drafts(const PlanningContext& context, Bytes rung) {
    if (!drafts_) {
      drafts_.emplace(facts(context), cost_, context, heads(context));
      next_rung_ = context.rungs->at_most(bytes_alive(merged_) + context.reserved);
    }
    for (; next_rung_ >= rung && next_rung_ > context.reserved; next_rung_ = context.rungs->below(next_rung_))
      drafts_->down_to(next_rung_ - context.reserved);
    return drafts_->at(rung - context.reserved);
  }

 private:
  Step apart_;  // where tasks are run again, other results can be in place
  MemoizedCost cost_;
  Step merged_;
  Floor floor_;
  Excess excess_;
  Bytes liveness_floor_;
  std::optional<StepFacts> facts_;
  std::vector<std::vector<bool>> heads_;
  std::optional<JointDrafts> drafts_;
  Bytes next_rung_;  // that there are no drafts for yet
};

// A step with its batch as it is.
class WholePlans {
 public:
  WholePlans(KnownStep& step, const PlanningContext& context)
      : step_(step), context_(context), own_(context), keeper_(step.cost()) {
    std::optional<Bytes>& memory = own_.memory[Tier::device];
    if (memory && *memory < step.floor().bytes && step.floor().bytes <= context.floor_at_most)
      memory = step.floor().bytes;
  }

  PlanResult plan() && {
    keeper_.consider_floor(step_.floor().bytes, step_.floor().task);
    const std::optional<Bytes>& memory = own_.memory[Tier::device];
    if (memory && !can_be_faster()) return std::move(keeper_).take();
    if (!memory || *memory >= step_.floor().bytes) consider_own();
    return std::move(keeper_).take();
  }

 private:
  [[nodiscard]] double seconds_to_beat() const { return keeper_.to_beat(context_.seconds_to_beat); }
  // Whether any plan can be that is to be tried here.
  [[nodiscard]] bool can_be_faster() const {
    return step_.excess().allows(std::max(*own_.memory[Tier::device], context_.floor_at_most), seconds_to_beat(),
                                 can_leave(context_));
  }

  void consider_own() {
    if (!own_.memory[Tier::device] || *own_.memory[Tier::device] >= step_.liveness_floor(own_))
      keeper_.consider("liveness", [&] { return plan_liveness(step_.apart(), step_.cost(), own_); });
    if (!own_.memory[Tier::device] || !can_be_faster()) return;
    consider_joint();
    if (!is_large(step_.merged())) consider_runtimes();
    // Where everything fits that can; without a cache it would not.
    if (own_.others_apart && own_.policy.get<SuperneuronsOptions>().cache) return;
    PlanningContext cached = own_;
    cached.policy.set<SuperneuronsOptions>().cache = true;
    keeper_.consider("superneurons", [&] { return plan_superneurons(step_.apart(), step_.cost(), cached); });
  }

  // The runtime of SuperNeurons with heads that move but are not dropped, for budgets near the floor.
  void consider_runtimes() {
    constexpr double kNearFloor = 1.5;
    if (static_cast<double>(own_.memory[Tier::device]->count()) >
        kNearFloor * static_cast<double>(step_.floor().bytes.count()))
      return;
    consider_runtimes(step_.heads(own_).front());
    consider_runtimes(step_.heads(own_).back());
  }

  // Drafts for the budget, and for less, so that copies have room to run ahead.
  void consider_joint() {
    const Bytes memory = *own_.memory[Tier::device];
    std::vector<std::span<const Draft>> lists;
    std::optional<JointDrafts> alone;
    if (!own_.rungs || memory != *context_.memory[Tier::device]) {
      alone.emplace(step_.facts(own_), step_.cost(), own_, step_.heads(own_));
      for (const std::int64_t percent : ladder::kJoint) lists.push_back(alone->down_to(percent_of(memory, percent)));
    } else {
      std::set<Bytes> rungs{own_.rungs->at_most(percent_of(memory, ladder::kLowestJoint) + own_.reserved)};
      Bytes rung = memory + own_.reserved;
      for (const int below : {0, 1, 1, 2}) {
        for (int k = 0; k < below; ++k) rung = own_.rungs->below(rung);
        rungs.insert(rung);
      }
      for (const Bytes each : rungs | std::views::reverse)
        if (each > own_.reserved) lists.push_back(step_.drafts(own_, each));
    }
    consider_joint_plans(step_.merged(), lists, step_.cost(), own_, context_.seconds_to_beat, keeper_);
  }

  void consider_runtimes(const std::vector<bool>& heads) {
    constexpr std::size_t kMostOps = 4;  // of a runtime's plan, times the step's tasks
    StepFacts facts(step_.merged(), {}, resting_storages(step_.merged(), own_));
    facts.keep(heads);
    const auto& options = own_.policy.get<SuperneuronsOptions>();
    for (const Prefetch prefetch : {Prefetch::in_time, Prefetch::at_once}) {
      if (!can_be_faster()) return;
      const RuntimeRules rules{options.recompute, options.replacement, prefetch};
      std::optional<Draft> draft = VirtualRuntime(facts, step_.cost(), *own_.memory[Tier::device], rules)
                                       .run_within(kMostOps * step_.merged().tasks.size());
      if (!draft ||
          seconds_at_least(step_.merged(), step_.cost(), *draft, own_.memory[Tier::device]) >= seconds_to_beat())
        continue;
      keeper_.consider("runtime", finish_placed(step_.merged(), std::move(*draft), step_.floor(), step_.cost(), own_));
    }
  }

  KnownStep& step_;
  const PlanningContext& context_;
  PlanningContext own_;  // at the floor, where there is to be a plan at all
  Keeper keeper_;
};

PlanResult plan_whole(Step step, const CostModel& model, const PlanningContext& context) {
  std::any local;
  std::any& known = context.remembered != nullptr ? *context.remembered : local;
  if (!known.has_value()) known = std::make_shared<KnownStep>(std::move(step), model, context);
  return WholePlans(*std::any_cast<std::shared_ptr<KnownStep>&>(known), context).plan();
}

// A step in sub-batches of this size with unlimited memory.
double ideal_in_rounds(const Step& step, std::int64_t samples, const CostModel& cost, const PlanningContext& context) {
  if (cuts_within(step, context)) return ideal_seconds(context.cut(samples, Part::whole), cost);
  const auto rounds = static_cast<double>(step.options.batch) / static_cast<double>(samples);
  return rounds * ideal_seconds(context.cut(samples, Part::later_round), cost);
}

// Smaller ones take less memory and more time.
void consider_sizes(const Step& step, const CostModel& cost, const PlanningContext& context, double seconds_to_beat,
                    Keeper& keeper) {
  const std::int64_t batch = step.options.batch;
  const bool within = cuts_within(step, context);
  constexpr std::int64_t kManyTasks = 10'000;
  const auto consider = [&](std::int64_t samples) {
    if (ideal_in_rounds(step, samples, cost, context) < keeper.to_beat(seconds_to_beat))
      keeper.consider(fmt::format("{} samples", samples),
                      [&] { return plan_rounds(plan_whole, step, samples, cost, context); });
  };
  std::int64_t before = batch;
  for (std::int64_t rounds = 2; rounds <= batch; rounds += std::max<std::int64_t>(within ? rounds : rounds / 2, 1)) {
    if (within && rounds * step.ordered_tasks > kManyTasks) break;
    const std::int64_t samples = (batch + rounds - 1) / rounds;
    if (std::exchange(before, samples) != samples) consider(samples);
  }
  // What is feasible does not depend on which sizes were tried.
  if (!keeper.found() && before > 1) consider(1);
}

PlanResult plan_auto(Step step, const CostModel& cost, const PlanningContext& context) {
  const std::optional<Bytes>& memory = context.memory[Tier::device];
  if (!may_cut(step, context) || !memory) return plan_whole(std::move(step), cost, context);
  Keeper keeper(cost);
  keeper.consider("whole", [&] { return plan_whole(step, cost, context); });
  // What is feasible does not depend on what is fastest.
  PlanningContext part = for_part(context);
  part.memory[Tier::device] = Bytes();
  const PlanResult smallest = plan_rounds(plan_whole, step, 1, cost, part);
  keeper.consider_floor(smallest.floor[Tier::device], smallest.bottleneck_task);
  if (!context.tries_cuts || std::max(*memory, context.cut_floor_at_most) < keeper.floor())
    return std::move(keeper).take();
  part.memory[Tier::device] = std::max(*memory, keeper.floor());
  consider_sizes(step, cost, part, context.seconds_to_beat, keeper);
  return std::move(keeper).take();
}

}  // namespace

Policy auto_policy() {
  return {.name = "auto",
          .description =
              "the fastest it finds, all others tried: each tensor kept, moved or recomputed, whichever costs least",
          .plan = plan_auto,
          .rank = 14,
          .rests_parameters = true,
          .cuts = true,
          .floor_grows = [](const PolicyOptions&) { return true; },
          .tries_all_others = true};
}

}  // namespace tide
