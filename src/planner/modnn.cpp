// moDNN (X. Chen et al., 2018): sub-batches as large as memory allows (modnn_batch.h), each worked
// through by Algorithm 1 (modnn_schedule.h).
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "cost/memoized.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/best.h"
#include "planner/finish.h"
#include "planner/in_place.h"
#include "planner/modnn_batch.h"
#include "planner/modnn_schedule.h"
#include "planner/policies.h"
#include "planner/rounds.h"

namespace tide {
namespace {

// Equation 4 knows neither what else will delay a copy nor when its place will be free, and one unlucky
// place can cost a second trip: a few guesses are tried, on large steps the first of them.
constexpr std::array<ModnnGuess, 6> kGuesses{{{2, MemoryList::Fit::tightest, true},
                                              {2, MemoryList::Fit::first, true},
                                              {4, MemoryList::Fit::tightest, true},
                                              {4, MemoryList::Fit::tightest, false},
                                              {8, MemoryList::Fit::tightest, true},
                                              {4, MemoryList::Fit::first, true}}};
constexpr std::size_t kGuessesOnLargeSteps = 2;
constexpr std::uint32_t kLargeStep = 4000;  // tasks
constexpr double kGoodEnough = 1.001;       // of the time with unlimited memory

// Copies of both directions share a link: each waits for the one before it.
PlanResult take_turns(PlanResult result) {
  if (!result.plan) return result;
  std::vector<Op>& ops = result.plan->phases.front().ops;
  std::int32_t before = -1;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(ops.size()); ++i) {
    Op& op = ops[static_cast<std::size_t>(i)];
    if (op.kind != OpKind::copy) continue;
    if (before >= 0 && ops[static_cast<std::size_t>(before)].lane != op.lane) op.waits.push_back(before);
    before = i;
  }
  return result;
}

// One step, not cut.
PlanResult plan_step(Step step, const CostModel& model, const PlannerOptions& options) {
  const MemoizedCost cost(model, step);
  if (options.in_place) step = merge_in_place(std::move(step));
  const Floor floor = smallest_floor(step);
  PlannerOptions merged = options;  // results are in place already
  merged.in_place = false;
  const auto with_floor = [&](PlanResult result) {
    result.floor = floor.bytes;
    result.bottleneck_task = floor.task;
    return result;
  };
  // Where everything fits there is nothing to do.
  if (options.memory && *options.memory < floor.bytes) return with_floor({});
  merged.memory.reset();
  PlanResult unlimited = plan_liveness(step, cost, merged);
  if (!options.memory || summarize(*unlimited.plan).peak_bytes <= *options.memory)
    return with_floor(std::move(unlimited));
  merged.memory = options.memory;
  const double enough = kGoodEnough * ideal_seconds(step, cost);
  Best best(cost, kPriceOfCopies);
  const auto offer = [&](PlanResult result) {
    result = with_floor(std::move(result));
    best.offer(options.one_lane ? take_turns(std::move(result)) : std::move(result));
  };
  offer(plan_liveness(step, cost, merged));
  const StepFacts facts(step, {});
  const bool large = step.ordered_tasks > kLargeStep;
  for (const ModnnGuess& guess : std::span(kGuesses).first(large ? kGuessesOnLargeSteps : kGuesses.size())) {
    if (best.within(enough)) break;
    offer(finish_placed(step, ModnnSchedule(facts, cost, *options.memory, options.one_lane, guess).run(), floor.bytes,
                        floor.task, options));
  }
  // The same by bytes alone, placed with all of it known. Packing loses a little, so the schedule is given a
  // little less.
  for (const std::int64_t percent : {100, 98, 96, 94, 91, 88}) {
    const Bytes share(options.memory->count() / 100 * percent);
    if (large || share < floor.bytes || best.within(enough)) break;
    Draft draft = ModnnSchedule(facts, cost, share, options.one_lane, {2, MemoryList::Fit::first, true, true}).run();
    draft.settled = true;
    PlanResult result = finish_quickly(step, std::move(draft), cost, merged);
    const bool packed = result.plan.has_value();
    if (packed) offer(std::move(result));
    if (packed) break;
  }
  return std::move(best).take();
}

}  // namespace

PlanResult plan_modnn(Step step, const CostModel& cost, const PlannerOptions& options) {
  if (!may_cut(step, options)) return plan_step(std::move(step), cost, options);
  const std::int64_t batch = step.options.batch;
  Best best(cost, kPriceOfCopies);
  PlanResult whole = plan_step(step, cost, options);
  const bool at_once =
      whole.plan && (!options.memory || simulate(*whole.plan, cost).seconds <= kGoodEnough * ideal_seconds(step, cost));
  best.offer(std::move(whole));
  const Floor floor = modnn_floor(step, cost, options);
  best.offer_floor(floor.bytes, floor.task);
  if (at_once || *options.memory < floor.bytes) return std::move(best).take();
  // The paper's size is as large as can be. Smaller ones move less; which is faster is the model's to say.
  const std::int64_t largest = evened(batch, modnn_sub_batch(step, cost, options));
  const std::int64_t rounds = (batch + largest - 1) / largest;
  const bool hurried = cut_part(step, largest, options).ordered_tasks > kLargeStep;
  const auto search = [&](std::int64_t first, bool more) {
    const int patience = hurried ? 1 : 3;
    int worse = 0;
    std::int64_t before = 0;
    for (std::int64_t count = first; count >= 2 && count <= batch && worse < patience;) {
      const std::int64_t samples = (batch + count - 1) / count;
      if (std::exchange(before, samples) != samples)
        worse = best.offer(plan_rounds(plan_step, step, samples, cost, options)) ? 0 : worse + 1;
      // In larger steps the more there are, so that many small rounds do not take long.
      const std::int64_t change = std::max<std::int64_t>(count / 16, 1);
      count = more ? count + change : count - change;
    }
  };
  search(std::max<std::int64_t>(rounds, 2), true);
  search(rounds - 1, false);
  if (!best.found()) best.offer(plan_rounds(plan_step, step, 1, cost, options));
  return std::move(best).take();
}

}  // namespace tide
