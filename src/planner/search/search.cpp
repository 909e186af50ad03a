#include "planner/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <limits>
#include <set>

#include "plan/checker.h"
#include "plan/timeline.h"
#include "planner/bound/excess.h"
#include "planner/search/keeper.h"
#include "planner/search/resting.h"
#include "planner/search/rounds.h"
#include "planner/search/rungs.h"

namespace tide {
namespace {

// The rungs of auto's own plans: fewer, the longer a step takes to plan.
struct RungsBySize {
  std::uint32_t tasks;  // at most
  Rungs rungs;
};
const std::array<RungsBySize, 3> kOwn{{{120, Rungs(64)}, {500, Rungs(16)}, {UINT32_MAX, Rungs(8)}}};
// Those of the other policies, and of sub-batches.
const Rungs kOthers(8), kCuts(4);
constexpr std::uint32_t kLargeStep = 1000;  // tasks: others as sub-batches
// Beyond this a plan takes seconds, and one has to do: for the budget as it is.
constexpr std::uint32_t kVeryLargeStep = 4000, kHugeStep = 60'000;

Rungs own_rungs(const Step& step) {
  return std::ranges::find_if(kOwn, [&](const RungsBySize& row) { return step.ordered_tasks <= row.tasks; })->rungs;
}

constexpr double kNever = std::numeric_limits<double>::infinity();

// Of all plans that searches at the same time have found.
class LeastSeconds {
 public:
  void offer(double seconds) {
    double known = least_;
    while (seconds < known && !least_.compare_exchange_weak(known, seconds)) {
    }
  }
  // What a plan has to be faster than so as not to be slower than that of another search. Bounds are not exact to the
  // last bit.
  [[nodiscard]] double of_others() const { return least_.load() * (1 + 1e-9); }

 private:
  std::atomic<double> least_ = kNever;
};

class Search {
 public:
  Search(const Policy& policy, const CostModel& cost) : policy_(policy), cost_(cost) {}

  // Of the steps of a builder.
  PlanResult floor(const BuildStep& build, PlanningContext context) {
    FusedSteps steps(build);
    begin(steps, context);
    PlanResult result = smallest(context);
    result.plan.reset();
    result.short_of = Tier::device;
    return result;
  }

  // The first that is found. For auto one of another policy does, unless that takes as long to find as all of them.
  PlanResult any_plan(const BuildStep& build, const PlanningContext& asked) {
    if (policy_.tries_all_others && asked.memory[Tier::device]) {
      FusedSteps steps(build);
      for (const Policy& policy : policies()) {
        PlanningContext context = asked;
        Search other(policy, cost_);
        other.begin(steps, context);
        context.floor_is_known = true;
        if (other.whole().ordered_tasks > kHugeStep) break;
        if (!policy.rests_parameters || !is_other(policy, context)) continue;
        const bool large = other.whole().ordered_tasks > kVeryLargeStep;
        if (PlanResult result = large ? other.at_budget(context) : other.on_rung(context); result.plan) return result;
      }
    }
    return over_rungs(build, asked);
  }

  // Over the steps of a builder, with a budget as high as its rungs.
  PlanResult over_rungs(const BuildStep& build, PlanningContext context) {
    const Stopwatch watch;
    FusedSteps steps(build);
    begin(steps, context);
    const std::optional<Bytes> budget = context.memory[Tier::device];
    const PlanResult least = smallest(context);
    context.floor_is_known = true;
    PlanResult result;
    if (!budget)
      result = over_fusing(context);
    else if (*budget >= least.floor[Tier::device] && whole().ordered_tasks > kVeryLargeStep)
      result = at_budget(context);
    else if (*budget >= least.floor[Tier::device])
      result = policy_.tries_all_others ? all_rungs(context, least.floor[Tier::device]) : on_rung(context);
    result.floor[Tier::device] = least.floor[Tier::device];
    result.bottleneck_task = least.bottleneck_task;
    planning_ += watch.seconds();
    if (result.plan) stamp(*result.plan, steps.at(result.plan->phases.front().step->options.fuse_limit), context);
    return proved(std::move(result));
  }

  // A step as it is, with the budget as it is.
  PlanResult unproved(const Step& step, const PlanningContext& context) {
    const Stopwatch watch;
    PlanResult result = over_policies(step, context);
    settle(result, cost_);
    planning_ += watch.seconds();
    result.plan_seconds = planning_;
    if (result.plan) stamp(*result.plan, step, context);
    return result;
  }

  PlanResult proved(PlanResult result) const {
    result.plan_seconds = planning_;
    if (!result.plan) return result;
    const Stopwatch watch;
    require_valid(*result.plan);
    result.check_seconds = watch.seconds();
    return result;
  }

 private:
  void begin(FusedSteps& steps, PlanningContext& context) {
    steps_ = &steps;
    (void)steps.known_limit(Bytes());
    context.cut = [&](std::int64_t samples, Part part) { return steps.cut({limit_, samples, part}); };
  }

  // Whether auto is to try it: where parameters rest, those that know nothing of it do not count.
  static bool is_other(const Policy& policy, const PlanningContext& context) {
    if (policy.tries_all_others) return false;
    const bool rests = context.parameters == Parameters::host ||
                       (context.rest_in_host && std::ranges::count(*context.rest_in_host, true) > 0);
    return policy.rests_parameters || !rests;
  }

  // auto: the best of its own and of all others, at the budget as it is.
  PlanResult over_policies(const Step& step, PlanningContext context) {
    if (!policy_.tries_all_others || !context.memory[Tier::device]) return over_resting(step, context);
    context.others_apart = true;
    std::future<PlanResult> theirs = std::async(launch(step, context), [&, context] {
      Keeper keeper(cost_);
      for (const Policy& policy : policies()) {
        if (!is_other(policy, context)) continue;
        keeper.consider(policy.name, [&] { return Search(policy, cost_).over_resting(step, context); });
      }
      return std::move(keeper).take();
    });
    Keeper keeper(cost_);
    keeper.consider("its own plans", [&] { return over_resting(step, context); });
    keeper.consider("other policies", theirs.get());
    return std::move(keeper).take();
  }

  // A step whose batch is cut may be measured when it is built, and wants the machine for itself.
  static std::launch launch(const Step& step, const PlanningContext& context) {
    const bool cuts = context.cut && (may_cut(step, context) || sub_batch_asked(step, context) > 0);
    return cuts ? std::launch::deferred : std::launch::async;
  }

  void stamp(Plan& plan, const Step& step, const PlanningContext& context) const {
    plan.policy = policy_.name;
    plan.numerics = numerics_of(plan);
    plan.fingerprint = fingerprint_of(step);
    plan.memory = context.memory;
  }

  [[nodiscard]] const Step& whole() const { return steps_->at(steps_->known_limit(Bytes())); }
  // Those that a policy other than auto is planned on.
  [[nodiscard]] Rungs rungs(const PlanningContext& context) const {
    return whole().ordered_tasks > kLargeStep || (policy_.cuts && may_cut(whole(), context)) ? kCuts : kOthers;
  }

  // The floor of the policy, at no matter which budget.
  PlanResult smallest(PlanningContext context) {
    context.memory[Tier::device] = Bytes();
    Keeper keeper(cost_, {.failure = Taste::Failure::smallest_floor});
    std::set<Bytes> limits{Bytes()};
    if (whole().options.fuse)
      for (const Bytes limit : fuse_limits(std::nullopt, whole().options.activations))
        limits.insert(steps_->known_limit(limit));
    for (const Bytes limit : limits) {
      limit_ = limit;
      const Step& step = steps_->at(limit);
      const RestingChoices choices(policy_, step, cost_, context);
      PlanningContext settled = context;
      settled.rest_in_host = choices.settled() ? choices.only() : choices.all();
      keeper.consider("floor", over_rounds(step, settled));
    }
    return std::move(keeper).take();
  }

  PlanResult at_budget(const PlanningContext& context) {
    Keeper keeper(cost_);
    for (const Bytes tried : fuse_limits(std::nullopt, whole().options.activations)) {
      limit_ = steps_->known_limit(tried);
      keeper.consider(name_of(limit_), [&] { return over_policies(steps_->at(limit_), context); });
      // Nothing that is fused less takes less of other memory.
      if (keeper.found() || keeper.best().short_of != Tier::device || !whole().options.fuse) break;
    }
    return std::move(keeper).take();
  }

  // A policy other than auto, at the highest rung. Where that leaves too much to other tiers, with all there is.
  PlanResult on_rung(PlanningContext context) {
    const Bytes budget = *context.memory[Tier::device];
    const Bytes rung = rungs(context).at_most(budget + context.reserved);
    context.floor_at_most = std::min(budget, rungs(context).above(rung) - context.reserved - Bytes(1));
    context.memory[Tier::device] = rung > context.reserved ? rung - context.reserved : Bytes();
    PlanResult result = with_most_fused(context);
    if (result.plan || result.short_of == Tier::device) return result;
    context.memory[Tier::device] = context.floor_at_most;
    return with_most_fused(context);
  }

  // With as much fused as can be, and where that does not fit the rung, with nothing.
  PlanResult with_most_fused(const PlanningContext& context) {
    Keeper keeper(cost_);
    for (const Bytes tried : fuse_limits(std::nullopt, whole().options.activations)) {
      if (!tried.is_zero() && !whole().options.fuse) break;
      const Bytes limit = steps_->known_limit(tried);
      if (!tried.is_zero() && limit.is_zero()) break;
      limit_ = limit;
      PlanResult result = over_resting(steps_->at(limit), context);
      const bool fits = result.floor[Tier::device] <= *context.memory[Tier::device];
      keeper.consider(name_of(limit), std::move(result));
      if (fits) break;
    }
    return std::move(keeper).take();
  }

  // What one of two searches over all rungs found.
  struct Found {
    PlanResult result;
    Bytes rung;  // of the plan
  };

  // auto: the best of all rungs. What is tried on one depends on nothing else, so that its own plans and those of the
  // other policies are made at the same time. Of plans that take as long, the one of the higher rung counts, and there
  // its own: which of them comes first makes no difference.
  PlanResult all_rungs(const PlanningContext& context, Bytes floor) {
    LeastSeconds least;
    Search others(policy_, cost_);
    others.steps_ = steps_;
    std::future<Found> theirs =
        std::async(launch(whole(), context), [&] { return others.rungs_of_others(context, floor, least); });
    Found own = rungs_of_its_own(context, floor, least);
    Found other = theirs.get();
    const auto seconds = [](const Found& found) { return found.result.plan ? *found.result.seconds : kNever; };
    const bool theirs_first =
        seconds(other) < seconds(own) || (seconds(other) == seconds(own) && other.rung > own.rung);
    Keeper keeper(cost_);
    if (theirs_first) keeper.consider("other policies", std::move(other.result));
    keeper.consider("its own plans", std::move(own.result));
    if (!theirs_first) keeper.consider("other policies", std::move(other.result));
    return std::move(keeper).take();
  }

  // Down to the first rung that is below the floor, and has sub-batches.
  template <typename Visit>
  void down_the_rungs(PlanningContext context, Bytes floor, const Visit& visit) const {
    const Rungs all = own_rungs(whole());
    const Bytes budget = *context.memory[Tier::device];
    context.rungs = all;
    context.others_apart = true;
    for (Bytes rung = all.at_most(budget + context.reserved);; rung = all.below(rung)) {
      const Bytes memory = rung > context.reserved ? rung - context.reserved : Bytes();
      context.floor_at_most = std::min(budget, all.above(rung) - context.reserved - Bytes(1));
      context.tries_cuts = kCuts.contains(rung);
      context.cut_floor_at_most =
          context.tries_cuts ? std::min(budget, kCuts.above(rung) - context.reserved - Bytes(1)) : Bytes();
      visit(rung, memory, context);
      // Below what is reserved there is nothing.
      if (memory < floor && (context.tries_cuts || memory.is_zero())) return;
    }
  }

  Found rungs_of_its_own(const PlanningContext& asked, Bytes floor, LeastSeconds& least) {
    Keeper keeper(cost_);
    Bytes best;
    down_the_rungs(asked, floor, [&](Bytes rung, Bytes memory, PlanningContext context) {
      context.memory[Tier::device] = memory;
      context.seconds_to_beat = keeper.to_beat(least.of_others());
      if (!keeper.consider(fmt::format("{} bytes", memory.count()), [&] { return over_fusing(context); })) return;
      best = rung;
      least.offer(keeper.seconds());
    });
    return {std::move(keeper).take(), best};
  }

  Found rungs_of_others(const PlanningContext& asked, Bytes floor, LeastSeconds& least) {
    Keeper keeper(cost_);
    Bytes best;
    down_the_rungs(asked, floor, [&](Bytes rung, Bytes, const PlanningContext& context) {
      for (const Policy& policy : policies()) {
        if (!consider_other(policy, rung, context, least, keeper)) continue;
        best = rung;
        least.offer(keeper.seconds());
      }
    });
    return {std::move(keeper).take(), best};
  }

  // As it would be planned alone within a budget for which this is the highest rung. Whether it is the best so far.
  bool consider_other(const Policy& policy, Bytes rung, const PlanningContext& asked, const LeastSeconds& least,
                      Keeper& keeper) {
    if (!is_other(policy, asked) || rung <= asked.reserved) return false;
    Search other(policy, cost_);
    PlanningContext context = asked;
    other.begin(*steps_, context);
    const Rungs rungs = other.rungs(context);
    if (!rungs.contains(rung)) return false;
    context.memory[Tier::device] = std::min(*asked.memory[Tier::device], rungs.above(rung) - asked.reserved - Bytes(1));
    const bool cut = policy.cuts && may_cut(whole(), context);
    const double to_beat = keeper.to_beat(least.of_others());
    if (!cut && sub_batch_asked(whole(), context) == 0) {
      const auto can_be_faster = [&](Bytes tried) {
        const Bytes limit = steps_->known_limit(tried);
        const Step& step = steps_->at(limit);
        const Excess& excess = excess_.try_emplace(limit, step, cost_, context).first->second;
        return excess.allows(*context.memory[Tier::device], to_beat, policy.moves) &&
               (policy.seconds_at_least == nullptr || policy.seconds_at_least(step, cost_, context) < to_beat);
      };
      if (std::ranges::none_of(fuse_limits(std::nullopt, whole().options.activations), can_be_faster)) return false;
    }
    if (*context.memory[Tier::device] < least_[&policy]) return false;
    context.seconds_to_beat = cut ? kNever : to_beat;
    return keeper.consider(policy.name, [&] {
      PlanResult result = other.on_rung(context);
      if (!result.plan && result.short_of == Tier::device)
        least_[&policy] = std::max(least_[&policy], result.floor[Tier::device]);
      return result;
    });
  }

  static std::string name_of(Bytes limit) {
    return limit.is_zero() ? "all fused" : fmt::format("fused up to {} bytes", limit.count());
  }

  // Whichever way of fusing is the fastest.
  PlanResult over_fusing(PlanningContext context) {
    Keeper keeper(cost_);
    std::set<Bytes> seen;
    const std::optional<Bytes>& memory = context.memory[Tier::device];
    const std::vector<Bytes> limits =
        memory && whole().options.fuse ? fuse_limits(memory, whole().options.activations) : std::vector<Bytes>{Bytes()};
    const double seconds = context.seconds_to_beat;
    for (const Bytes tried : limits) {
      limit_ = steps_->known_limit(tried);
      if (!seen.insert(limit_).second) continue;
      const Step& step = steps_->at(limit_);
      if (memory) {
        context.seconds_to_beat = keeper.to_beat(seconds);
        const Excess& excess = excess_.try_emplace(limit_, step, cost_, context).first->second;
        const bool cut = context.tries_cuts && may_cut(step, context);
        if (!cut && sub_batch_asked(step, context) == 0 &&
            !excess.allows(std::max(*memory, context.floor_at_most), context.seconds_to_beat, true))
          continue;
        context.excess = &excess;
      }
      keeper.consider(name_of(limit_), [&] { return over_resting(step, context); });
    }
    return std::move(keeper).take();
  }

  PlanResult over_resting(const Step& step, PlanningContext context) {
    const RestingChoices choices(policy_, step, cost_, context);
    const auto plan = [&](const std::optional<std::vector<bool>>& resting) {
      context.rest_in_host = resting;
      context.remembered = steps_ != nullptr ? &remembered_[{limit_, resting.value_or(std::vector<bool>())}] : nullptr;
      return over_rounds(step, context);
    };
    if (choices.settled()) return plan(choices.only());
    Keeper keeper(cost_);
    const double seconds = context.seconds_to_beat;
    for (const RestingChoice& choice : choices.list()) {
      context.seconds_to_beat = keeper.to_beat(seconds);
      keeper.consider(fmt::format("{} bytes rest in host memory", choice.bytes.count()),
                      [&] { return plan(choice.rest_in_host); });
    }
    // What would fit with more of them away does.
    const std::optional<Bytes>& memory = context.memory[Tier::device];
    if (!keeper.found() && memory && keeper.floor() > std::max(*memory, context.floor_at_most))
      keeper.consider("all rest in host memory", [&] { return plan(choices.all()); });
    if (steps_ != nullptr) return std::move(keeper).take();  // who asks for the floor himself
    // What is feasible does not depend on what was fastest.
    PlanResult result = std::move(keeper).take();
    context.rest_in_host = choices.all();
    context.memory[Tier::device] = Bytes();
    PlanResult least = over_rounds(step, context);
    result.floor[Tier::device] = least.floor[Tier::device];
    result.bottleneck_task = std::move(least.bottleneck_task);
    return result;
  }

  // In the sub-batches that were asked for, or as the policy does it.
  PlanResult over_rounds(const Step& step, const PlanningContext& context) {
    const std::int64_t samples = sub_batch_asked(step, context);
    if (samples == 0) {
      // auto goes to the floor itself, together with what else it tries.
      if (policy_.tries_all_others) return policy_.plan(step, cost_, context);
      return plan_or_floor(context, [&](const PlanningContext& at) { return policy_.plan(step, cost_, at); });
    }
    return plan_or_floor(context, [&](const PlanningContext& at) {
      return plan_rounds(policy_.plan, step, samples, cost_, for_part(at));
    });
  }

  // Where the budget is too small, at the floor if the context permits that.
  template <typename Make>
  static PlanResult plan_or_floor(PlanningContext context, const Make& make) {
    PlanResult result = make(context);
    std::optional<Bytes>& memory = context.memory[Tier::device];
    const Bytes floor = result.floor[Tier::device];
    if (result.plan || result.short_of != Tier::device || !memory || floor <= *memory || floor > context.floor_at_most)
      return result;
    memory = floor;
    return make(context);
  }

  const Policy& policy_;
  const CostModel& cost_;
  double planning_ = 0;  // seconds so far
  // Of a search over steps:
  FusedSteps* steps_ = nullptr;
  Bytes limit_;  // of the step at hand
  std::map<Bytes, Excess> excess_;
  std::map<const Policy*, Bytes> least_;  // floors of other policies, where they are known
  std::map<std::pair<Bytes, std::vector<bool>>, std::any> remembered_;
};

}  // namespace

PlanResult search_plan(const Policy& policy, const BuildStep& build, const CostModel& cost,
                       const PlanningContext& context) {
  PlanResult late = Search(policy, cost).over_rungs(build, context);
  const StepOptions options = late.plan ? late.plan->phases.front().step->options : build({}).options;
  // Without a budget nothing is gained by updating sooner.
  if (options.ranks.count == 1 || !options.training || !context.memory[Tier::device]) return late;
  const BuildStep build_early = [&](StepChoice choice) {
    choice.early_updates = true;
    return build(choice);
  };
  PlanResult early = Search(policy, cost).over_rungs(build_early, context);
  for (PlanResult* const result : {&late, &early})
    if (result->plan && !result->seconds) result->seconds = simulate(*result->plan, cost).seconds;
  const bool better = early.plan ? !late.plan || *early.seconds < *late.seconds
                                 : !late.plan && early.floor[Tier::device] < late.floor[Tier::device];
  return better ? early : late;
}

PlanResult search_any_plan(const Policy& policy, const BuildStep& build, const CostModel& cost,
                           const PlanningContext& context) {
  return Search(policy, cost).any_plan(build, context);
}

PlanResult search_floor(const Policy& policy, const BuildStep& build, const CostModel& cost,
                        const PlanningContext& context) {
  return Search(policy, cost).floor(build, context);
}

PlanResult make_plan(const Policy& policy, const Step& step, const CostModel& cost, const PlanningContext& context) {
  Search search(policy, cost);
  return search.proved(search.unproved(step, context));
}

PlanResult make_unproved_plan(const Policy& policy, const Step& step, const CostModel& cost,
                              const PlanningContext& context) {
  return Search(policy, cost).unproved(step, context);
}

}  // namespace tide
