// The default, on a batch as it is: plans in every way there is and keeps the one that the simulator finds fastest.
#include <algorithm>
#include <array>
#include <span>

#include "cost/memoized.h"
#include "plan/timeline.h"
#include "planner/best.h"
#include "planner/finish.h"
#include "planner/in_place.h"
#include "planner/joint.h"
#include "planner/policies.h"
#include "planner/runtime.h"
#include "planner/segments.h"

namespace tide {
namespace {

// The first ones are tried on steps of any size.
constexpr std::array<Trade, 6> kTrades{{
    {0, 0, false},
    {0.8, 0.05, false},
    {0.4, 0.05, false},
    {0.95, 0, false},
    {0, 0, true},
    {0.8, 0.05, true},
}};
constexpr std::size_t kTradesOfLargeSteps = 2;
constexpr std::uint32_t kLargeStep = 4000;  // tasks

constexpr std::size_t kMostOps = 4;  // of a runtime's plan, times the step's tasks
constexpr double kGoodEnough = 1.001;  // of the time with unlimited memory

// Placement loses a little: aim lower until it fits.
PlanResult plan_trade(const Step& step, const StepFacts& facts, const CostModel& cost, const PlannerOptions& options,
                      const Trade& trade, const std::vector<bool>& heads) {
  PlanResult result;
  result.floor = Bytes(INT64_MAX);
  for (const std::int64_t percent : {100, 98, 95, 91}) {
    std::optional<Draft> draft = plan_jointly(facts, cost, options, Bytes(options.memory->count() / 100 * percent), trade, heads);
    if (!draft) break;
    result = finish_quickly(step, std::move(*draft), cost, options);
    if (result.plan || result.short_of != Tier::device) break;
  }
  return result;
}

// The runtime of SuperNeurons, which fits wherever anything does, with heads that move but are
// not dropped.
void offer_runtimes(const Step& step, const CostModel& cost, const PlannerOptions& options,
                    const std::vector<bool>& heads, const Floor& floor, Best& best) {
  StepFacts facts(step, {}, resting_storages(step, options));
  facts.keep(heads);
  for (const Prefetch prefetch : {Prefetch::in_time, Prefetch::at_once})
    if (std::optional<Draft> draft = VirtualRuntime(facts, cost, *options.memory, options, prefetch).run_within(kMostOps * step.tasks.size()))
      best.offer(finish_placed(step, std::move(*draft), floor.bytes, floor.task, options));
}

// Those that recompute alone: none moves anything, so that parameters have to be on the device.
void offer_mirrored(const Step& step, const CostModel& cost, const PlannerOptions& options, Best& best) {
  const Resting resting = resting_storages(step, options);
  if (std::find(resting.begin(), resting.end(), true) != resting.end()) return;
  for (const PolicyFunction plan : {plan_drop_cheap, plan_sublinear, plan_recursive}) best.offer(plan(step, cost, options));
  PlannerOptions uncut = options;
  uncut.cut = {};
  best.offer(plan_modnn(step, cost, uncut));
}

}  // namespace

PlanResult plan_whole(Step step, const CostModel& model, const PlannerOptions& options) {
  const MemoizedCost cost(model, step);
  const double ideal = ideal_seconds(step, cost);
  Best best(cost);
  best.offer(plan_liveness(step, cost, options));
  const Step apart = step;  // where tasks are run again, other results can be in place
  if (options.in_place) step = merge_in_place(std::move(step));
  const Floor floor = smallest_floor(step, resting_storages(step, options));
  best.offer_floor(floor.bytes, floor.task);
  if (!options.memory || best.within(ideal * kGoodEnough)) return std::move(best).take();
  if (*options.memory < floor.bytes) return std::move(best).take();
  PlannerOptions merged = options;  // results are in place already
  merged.in_place = false;
  merged.cache = true;  // which fits wherever anything does
  best.offer(plan_superneurons(step, cost, merged));
  offer_mirrored(apart, cost, options, best);
  const StepFacts facts(step, {}, resting_storages(step, options));
  const Segments segments(facts);
  const std::int64_t balanced = segments.balanced();
  const bool large = step.ordered_tasks > kLargeStep;
  const std::span<const Trade> trades(kTrades.data(), large ? kTradesOfLargeSteps : kTrades.size());
  std::vector<std::int64_t> sizes{balanced, 4 * balanced};
  if (!large) sizes.insert(sizes.end(), {segments.largest(), 0});
  for (const std::int64_t size : sizes) {
    const std::vector<bool> heads = segments.heads(size);
    for (const Trade& trade : trades) best.offer(plan_trade(step, facts, cost, options, trade, heads));
    if (size <= balanced && !large) offer_runtimes(step, cost, options, heads, floor, best);
  }
  return std::move(best).take();
}

}  // namespace tide
