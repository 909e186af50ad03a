// The default: plans in every way there is and keeps the plan that the simulator finds fastest.
#include <algorithm>

#include "cost/memoized.h"
#include "plan/timeline.h"
#include "planner/draft/in_place.h"
#include "planner/finish/finish.h"
#include "planner/joint/attempts.h"
#include "planner/policies/liveness.h"
#include "planner/policies/superneurons.h"
#include "planner/policy.h"
#include "planner/runtime/runtime.h"
#include "planner/search/enough.h"
#include "planner/search/keeper.h"
#include "planner/search/rounds.h"

namespace tide {
namespace {

// The policies that fit wherever anything does, with all their techniques.
void consider_first(const Step& merged, const CostModel& cost, PlanningContext context, Keeper& keeper) {
  context.in_place = false;  // results are in place already
  context.policy.set<SuperneuronsOptions>().cache = true;
  for (const Policy& policy : policies())
    if (policy.comes_first) keeper.consider(policy.name, [&] { return policy.plan(merged, cost, context); });
}

// All other policies. Where parameters rest, those that know nothing of it do not count.
void consider_others(const Step& step, const CostModel& cost, PlanningContext context, Keeper& keeper) {
  const bool rests = any_rests(resting_storages(step, context));
  context.cut = {};
  const bool first_were_asked_for = context.policy.get<SuperneuronsOptions>().cache;
  bool fits_with_fastest = false;
  for (const Policy& policy : policies()) {
    if (policy.tries_all_others || policy.another_when_whole || (rests && !policy.rests_parameters)) continue;
    if (policy.comes_first && first_were_asked_for) continue;
    keeper.consider(policy.name, [&] {
      PlanResult result = policy.plan(step, cost, context);
      if (policy.plan_smallest != nullptr && result.plan) fits_with_fastest = true;
      return result;
    });
  }
  if (fits_with_fastest || rests) return;
  for (const Policy& policy : policies())
    if (policy.plan_smallest != nullptr)
      keeper.consider(policy.name, [&] { return policy.plan_smallest(step, cost, context); });
}

// The runtime of SuperNeurons, which fits wherever anything does, with heads that move but are
// not dropped.
void consider_runtimes(const Step& step, const CostModel& cost, const PlanningContext& context,
                       const std::vector<bool>& heads, const Floor& floor, Keeper& keeper) {
  constexpr std::size_t kMostOps = 4;  // of a runtime's plan, times the step's tasks
  StepFacts facts(step, {}, resting_storages(step, context));
  facts.keep(heads);
  const auto& options = context.policy.get<SuperneuronsOptions>();
  for (const Prefetch prefetch : {Prefetch::in_time, Prefetch::at_once}) {
    const RuntimeRules rules{options.recompute, options.replacement, prefetch};
    std::optional<Draft> draft =
        VirtualRuntime(facts, cost, *context.memory[Tier::device], rules).run_within(kMostOps * step.tasks.size());
    if (draft) keeper.consider("runtime", finish_placed(step, std::move(*draft), floor, context));
  }
}

// A step with its batch as it is.
PlanResult plan_whole(Step step, const CostModel& model, const PlanningContext& context) {
  const MemoizedCost cost(model, step);
  const std::optional<Bytes>& memory = context.memory[Tier::device];
  const double ideal = ideal_seconds(step, cost);
  Keeper keeper(cost);
  keeper.consider("liveness", [&] { return plan_liveness(step, cost, context); });
  const Step apart = step;  // where tasks are run again, other results can be in place
  if (context.in_place) step = merge_in_place(std::move(step));
  const Floor floor = smallest_floor(step, resting_storages(step, context));
  keeper.consider_floor(floor.bytes, floor.task);
  if (!memory || keeper.within(ideal * enough::kNothingIsFaster)) return std::move(keeper).take();
  if (*memory < floor.bytes) return std::move(keeper).take();
  consider_first(step, cost, context, keeper);
  consider_others(apart, cost, context, keeper);
  if (keeper.within(ideal * enough::kHardlyFaster)) return std::move(keeper).take();
  const StepFacts facts(step, {}, resting_storages(step, context));
  const Segments segments(facts);
  const std::int64_t balanced = segments.balanced();
  std::vector<std::vector<bool>> heads{segments.heads(balanced), segments.heads(4 * balanced)};
  if (!is_large(step)) heads.insert(heads.end(), {segments.heads(segments.largest()), segments.heads(0)});
  consider_joint_plans(step, facts, cost, context, heads, keeper);
  if (is_large(step) || keeper.within(ideal * enough::kNoNeedForRuntimes)) return std::move(keeper).take();
  consider_runtimes(step, cost, context, heads.front(), floor, keeper);
  consider_runtimes(step, cost, context, heads.back(), floor, keeper);
  return std::move(keeper).take();
}

// A step in sub-batches of this size with unlimited memory.
double ideal_in_rounds(const Step& step, std::int64_t samples, const CostModel& cost, const PlanningContext& context) {
  if (cuts_within(step, context)) return ideal_seconds(context.cut(samples, Part::whole), cost);
  const auto rounds = static_cast<double>(step.options.batch) / static_cast<double>(samples);
  return rounds * ideal_seconds(context.cut(samples, Part::later_round), cost);
}

// The other policies that cut batches. They keep parameters on the device.
void consider_others_cut(const Step& step, const CostModel& cost, const PlanningContext& context, Keeper& keeper) {
  if (any_rests(resting_storages(step, context))) return;
  for (const Policy& policy : policies()) {
    if (policy.cuts == Policy::Cuts::never || policy.tries_all_others) continue;
    // Cut within one step, it has a task for every sub-batch.
    if (policy.cuts == Policy::Cuts::many_sizes && cuts_within(step, context)) continue;
    keeper.consider(policy.name, [&] { return policy.plan(step, cost, context); });
  }
}

// Smaller ones take less memory and more time; two in a row that gain nothing are enough.
void consider_sizes(const Step& step, const CostModel& cost, const PlanningContext& context, Keeper& keeper) {
  const std::int64_t batch = step.options.batch;
  const bool within = cuts_within(step, context);
  constexpr std::int64_t kManyTasks = 10'000;
  std::int64_t before = batch;
  int worse = 0;
  for (std::int64_t rounds = 2; rounds <= batch && worse < 2;
       rounds += std::max<std::int64_t>(within ? rounds : rounds / 2, 1)) {
    const std::int64_t samples = (batch + rounds - 1) / rounds;
    if (std::exchange(before, samples) == samples) continue;
    if (within && keeper.found() && rounds * step.ordered_tasks > kManyTasks) break;
    const bool found = keeper.found();
    const double seconds = keeper.seconds();
    if (!found || ideal_in_rounds(step, samples, cost, context) < seconds)
      keeper.consider(fmt::format("{} samples", samples),
                      [&] { return plan_rounds(plan_whole, step, samples, cost, context); });
    worse = found && keeper.seconds() >= seconds ? worse + 1 : 0;
  }
}

PlanResult plan_auto(Step step, const CostModel& cost, const PlanningContext& context) {
  const std::optional<Bytes>& memory = context.memory[Tier::device];
  if (!may_cut(step, context) || !memory) return plan_whole(std::move(step), cost, context);
  Keeper keeper(cost);
  keeper.consider("whole", [&] { return plan_whole(step, cost, context); });
  // What is feasible does not depend on what is fastest.
  PlanningContext least = context;
  least.memory[Tier::device] = Bytes();
  const PlanResult smallest = plan_rounds(plan_whole, step, 1, cost, least);
  keeper.consider_floor(smallest.floor[Tier::device], smallest.bottleneck_task);
  if (keeper.within(enough::kNoNeedToCut * ideal_seconds(step, cost)) || *memory < keeper.floor())
    return std::move(keeper).take();
  consider_others_cut(step, cost, context, keeper);
  consider_sizes(step, cost, context, keeper);
  if (!keeper.found()) keeper.consider("one sample", [&] { return plan_rounds(plan_whole, step, 1, cost, context); });
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
          .cuts = Policy::Cuts::few_sizes,
          .tries_all_others = true};
}

}  // namespace tide
