// moDNN (X. Chen et al., 2018): sub-batches as large as memory allows (modnn/batch.h), each worked
// through by Algorithm 1 (modnn/schedule.h).
#include "planner/policies/modnn.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "cost/memoized.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/draft/in_place.h"
#include "planner/finish/finish.h"
#include "planner/modnn/batch.h"
#include "planner/modnn/schedule.h"
#include "planner/policies/liveness.h"
#include "planner/policy.h"
#include "planner/search/enough.h"
#include "planner/search/keeper.h"
#include "planner/search/ladder.h"
#include "planner/search/rounds.h"

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

// Copies of both directions share a link: each waits for the one before it.
PlanResult take_turns(PlanResult result) {
  if (!result.plan) return result;
  std::vector<Op>& ops = result.plan->phases.front().ops;
  std::int32_t before = -1;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(ops.size()); ++i) {
    Op& op = ops[static_cast<std::size_t>(i)];
    if (!op.is_copy()) continue;
    if (before >= 0 && ops[static_cast<std::size_t>(before)].lane != op.lane) op.waits.push_back(before);
    before = i;
  }
  result.seconds.reset();
  return result;
}

// One step, not cut.
PlanResult plan_step(Step step, const CostModel& model, const PlanningContext& context) {
  const MemoizedCost cost(model, step);
  if (context.in_place) step = merge_in_place(std::move(step));
  const Floor floor = smallest_floor(step);
  PlanningContext merged = context;  // results are in place already
  merged.in_place = false;
  const auto with_floor = [&](PlanResult result) {
    result.floor[Tier::device] = floor.bytes;
    result.bottleneck_task = floor.task;
    return result;
  };
  // Where everything fits there is nothing to do.
  if (context.memory[Tier::device] && *context.memory[Tier::device] < floor.bytes) return below(floor);
  merged.memory[Tier::device].reset();
  PlanResult unlimited = plan_liveness(step, cost, merged);
  if (!context.memory[Tier::device] || summarize(*unlimited.plan).peak[Tier::device] <= *context.memory[Tier::device])
    return with_floor(std::move(unlimited));
  merged.memory[Tier::device] = context.memory[Tier::device];
  const Bytes memory = *context.memory[Tier::device];
  const double enough = enough::kHardlyFaster * ideal_seconds(step, cost);
  const bool one_lane = context.policy.get<ModnnOptions>().one_lane;
  Keeper keeper(cost, kMovesLess);
  const auto consider = [&](std::string_view name, PlanResult result) {
    result = with_floor(std::move(result));
    keeper.consider(name, one_lane ? take_turns(std::move(result)) : std::move(result));
  };
  consider("liveness", plan_liveness(step, cost, merged));
  const StepFacts facts(step, {});
  const bool large = step.ordered_tasks > kLargeStep;
  for (const ModnnGuess& guess : std::span(kGuesses).first(large ? kGuessesOnLargeSteps : kGuesses.size())) {
    if (keeper.within(enough)) break;
    consider("a guess",
             finish_placed(step, ModnnSchedule(facts, cost, memory, one_lane, guess).run(), floor, cost, context));
  }
  // The same by bytes alone, placed with all of it known.
  aim_lower(ladder::kModnn, [&](std::int64_t percent) {
    const Bytes share = percent_of(memory, percent);
    if (large || share < floor.bytes || keeper.within(enough)) return true;
    Draft draft = ModnnSchedule(facts, cost, share, one_lane, {2, MemoryList::Fit::first, true, true}).run();
    draft.settled = true;
    PlanResult result = finish_quickly(step, std::move(draft), cost, merged);
    const bool packed = result.plan.has_value();
    if (packed) consider("by bytes", std::move(result));
    return packed;
  });
  return std::move(keeper).take();
}

constexpr std::array kModnnFlags{
    PolicyOption{"--one-lane", "modnn: copies out and in share one link and take turns, as in the paper", "",
                 PolicyOption::Form::flag,
                 [](PolicyOptions& options, const std::string&) { options.set<ModnnOptions>().one_lane = true; }},
};

PlanResult plan_modnn(Step step, const CostModel& cost, const PlanningContext& context) {
  if (!may_cut(step, context)) return plan_step(std::move(step), cost, context);
  const std::int64_t batch = step.options.batch;
  Keeper keeper(cost, kMovesLess);
  PlanResult whole = plan_step(step, cost, context);
  settle(whole, cost);
  const bool at_once = whole.plan && (!context.memory[Tier::device] ||
                                      *whole.seconds <= enough::kHardlyFaster * ideal_seconds(step, cost));
  Floor least{whole.floor[Tier::device], whole.bottleneck_task};
  keeper.consider("whole", std::move(whole));
  const Floor floor = modnn_floor(step, cost, context);
  if (floor.bytes < least.bytes) least = floor;
  // What is feasible does not depend on which sizes were tried: pieces are rounded up, so that now and then two samples
  // take less than one.
  const auto answer = [&] {
    PlanResult result = std::move(keeper).take();
    result.floor[Tier::device] = least.bytes;
    result.bottleneck_task = least.task;
    return result;
  };
  if (at_once || *context.memory[Tier::device] < floor.bytes) return answer();
  // The paper's size is as large as can be. Smaller ones move less; which is faster is the model's to say.
  const std::int64_t largest = evened(batch, modnn_sub_batch(step, cost, context));
  const std::int64_t rounds = (batch + largest - 1) / largest;
  const bool hurried = cut_part(step, largest, context).ordered_tasks > kLargeStep;
  const auto search = [&](std::int64_t first, bool more) {
    const int patience = hurried ? 1 : 3;
    int worse = 0;
    std::int64_t before = 0;
    for (std::int64_t count = first; count >= 2 && count <= batch && worse < patience;) {
      const std::int64_t samples = (batch + count - 1) / count;
      if (std::exchange(before, samples) != samples)
        worse = keeper.consider(fmt::format("{} samples", samples),
                                [&] { return plan_rounds(plan_step, step, samples, cost, context); })
                    ? 0
                    : worse + 1;
      // In larger steps the more there are, so that many small rounds do not take long.
      const std::int64_t change = std::max<std::int64_t>(count / 16, 1);
      count = more ? count + change : count - change;
    }
  };
  search(std::max<std::int64_t>(rounds, 2), true);
  search(rounds - 1, false);
  if (!keeper.found()) keeper.consider("one sample", [&] { return plan_rounds(plan_step, step, 1, cost, context); });
  return answer();
}

}  // namespace

Policy modnn_policy() {
  return {.name = "modnn",
          .description =
              "neighbours leave where that delays least, and come back just in time; batches are cut to fit (moDNN)",
          .plan = plan_modnn,
          .rank = 9,
          .cuts = true,
          .floor_grows = [](const PolicyOptions&) { return true; },
          .options = kModnnFlags};
}

}  // namespace tide
