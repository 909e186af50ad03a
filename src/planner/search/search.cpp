#include "planner/search/search.h"

#include "plan/checker.h"
#include "plan/timeline.h"
#include "planner/search/enough.h"
#include "planner/search/keeper.h"
#include "planner/search/resting.h"
#include "planner/search/rounds.h"

namespace tide {
namespace {

class Search {
 public:
  Search(const Policy& policy, const CostModel& cost) : policy_(policy), cost_(cost) {}

  PlanResult over_fusing(const BuildStep& build, PlanningContext context) {
    Step whole = build({});
    Bytes limit;
    context.cut = [&](std::int64_t samples, Part part) { return build({limit, samples, part}); };
    if (!context.memory[Tier::device] || !whole.options.fuse) return one_step(whole, context);
    const double enough = enough::kNoNeedToFuseLess * ideal_seconds(whole, cost_);
    Keeper keeper(cost_, {.failure = Taste::Failure::smallest_floor});
    std::size_t tasks = 0;  // of the step before: the same number is the same step
    for (const Bytes tried : fuse_limits(context.memory[Tier::device], whole.options.activations)) {
      limit = tried;
      if (keeper.within(enough)) break;
      // Where the batch is cut within the step nothing is fused.
      if (keeper.found() && keeper.best().plan->phases.front().step->options.sub_batch > 0) break;
      Step step = limit.is_zero() ? whole : build({limit});
      if (step.tasks.size() == tasks) continue;
      tasks = step.tasks.size();
      keeper.consider(limit.is_zero() ? "all fused" : fmt::format("fused up to {} bytes", limit.count()),
                      [&] { return one_step(step, context); });
    }
    PlanResult result = std::move(keeper).take();
    result.plan_seconds = planning_;
    result.check_seconds = checking_;
    return result;
  }

  // A step as it is: plans and stamps.
  PlanResult unproved(const Step& step, const PlanningContext& context) {
    const std::string fingerprint = fingerprint_of(step);
    const Stopwatch watch;
    PlanResult result = over_resting(step, context);
    settle(result, cost_);
    planning_ += watch.seconds();
    result.plan_seconds = planning_;
    if (!result.plan) return result;
    result.plan->policy = policy_.name;
    result.plan->numerics = numerics_of(*result.plan);
    result.plan->fingerprint = fingerprint;
    result.plan->memory = context.memory;
    return result;
  }

  // The same, and checks.
  PlanResult one_step(const Step& step, const PlanningContext& context) {
    PlanResult result = unproved(step, context);
    if (!result.plan) return result;
    const Stopwatch watch;
    require_valid(*result.plan);
    checking_ += watch.seconds();
    result.check_seconds = checking_;
    return result;
  }

 private:
  PlanResult over_resting(const Step& step, PlanningContext context) {
    const RestingChoices choices(policy_, step, cost_, context);
    if (choices.settled()) {
      context.rest_in_host = choices.only();
      return over_rounds(step, context);
    }
    Keeper keeper(cost_, {.failure = Taste::Failure::last});
    for (const RestingChoice& choice : choices.list()) {
      if (keeper.within(choices.enough_seconds())) break;
      context.rest_in_host = choice.rest_in_host;
      keeper.consider(
          fmt::format("{} bytes rest in host memory", choice.bytes.count()), [&] { return over_rounds(step, context); },
          choice.advantage);
    }
    PlanResult result = std::move(keeper).take();
    // What is feasible does not depend on what was fastest.
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
    if (samples == 0) return policy_.plan(step, cost_, context);
    return plan_rounds(policy_.plan, step, samples, cost_, context);
  }

  const Policy& policy_;
  const CostModel& cost_;
  double planning_ = 0, checking_ = 0;  // seconds so far
};

}  // namespace

PlanResult search_plan(const Policy& policy, const BuildStep& build, const CostModel& cost,
                       const PlanningContext& context) {
  return Search(policy, cost).over_fusing(build, context);
}

PlanResult make_plan(const Policy& policy, const Step& step, const CostModel& cost, const PlanningContext& context) {
  return Search(policy, cost).one_step(step, context);
}

PlanResult make_unproved_plan(const Policy& policy, const Step& step, const CostModel& cost,
                              const PlanningContext& context) {
  return Search(policy, cost).unproved(step, context);
}

}  // namespace tide
