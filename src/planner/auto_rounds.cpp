// The default policy where it may cut the batch: the fastest plan over all sizes of sub-batches.
#include <algorithm>

#include "planner/best.h"
#include "planner/policies.h"
#include "planner/resting.h"
#include "planner/rounds.h"

namespace tide {
namespace {

// A step in sub-batches of this size with unlimited memory.
double ideal_in_rounds(const Step& step, std::int64_t samples, const CostModel& cost, const PlannerOptions& options) {
  if (cuts_within(step, options)) return ideal_seconds(options.cut(samples, Part::whole), cost);
  const auto rounds = static_cast<double>(step.options.batch) / static_cast<double>(samples);
  return rounds * ideal_seconds(options.cut(samples, Part::later_round), cost);
}

}  // namespace

PlanResult plan_auto(Step step, const CostModel& cost, const PlannerOptions& options) {
  Best best(cost);
  best.offer(plan_whole(step, cost, options));
  if (!may_cut(step, options) || !options.memory) return std::move(best).take();
  // What is feasible does not depend on what is fastest.
  PlannerOptions least = options;
  least.memory = Bytes();
  const PlanResult smallest = plan_rounds(plan_whole, step, 1, cost, least);
  best.offer_floor(smallest.floor, smallest.bottleneck_task);
  constexpr double kGoodEnough = 1.01;  // of the time with unlimited memory
  if (best.within(kGoodEnough * ideal_seconds(step, cost)) || *options.memory < best.floor())
    return std::move(best).take();
  const bool within = cuts_within(step, options);
  // These keep parameters on the device.
  const Resting resting = resting_storages(step, options);
  if (std::find(resting.begin(), resting.end(), true) == resting.end())
    for (const PolicyFunction other : {plan_modnn, plan_vdnn_plus}) {
      // Cut within one step, it has a task for every sub-batch: vDNN's many sizes would take minutes.
      if (within && other == plan_vdnn_plus) continue;
      best.offer(other(step, cost, options));
    }
  // Smaller ones take less memory and more time; two in a row that gain nothing are enough.
  const std::int64_t batch = step.options.batch;
  constexpr std::int64_t kManyTasks = 10'000;
  std::int64_t before = batch;
  int worse = 0;
  for (std::int64_t rounds = 2; rounds <= batch && worse < 2;
       rounds += std::max<std::int64_t>(within ? rounds : rounds / 2, 1)) {
    const std::int64_t samples = (batch + rounds - 1) / rounds;
    if (std::exchange(before, samples) == samples) continue;
    if (within && best.found() && rounds * step.ordered_tasks > kManyTasks) break;
    const bool found = best.found();
    const double seconds = best.seconds();
    if (!found || ideal_in_rounds(step, samples, cost, options) < seconds)
      best.offer(plan_rounds(plan_whole, step, samples, cost, options));
    worse = found && best.seconds() >= seconds ? worse + 1 : 0;
  }
  if (!best.found()) best.offer(plan_rounds(plan_whole, step, 1, cost, options));
  return std::move(best).take();
}

}  // namespace tide
