// vDNN+, moDNN's baseline: vDNN in sub-batches of moDNN's size.
#include <algorithm>

#include "planner/best.h"
#include "planner/modnn_batch.h"
#include "planner/policies.h"
#include "planner/rounds.h"

namespace tide {
namespace {

PlanResult plan_vdnn(Step step, const CostModel& cost, const PlannerOptions& options) {
  Best best(cost, kPriceOfCopies);
  best.offer(plan_vdnn_conv(step, cost, options));
  best.offer(plan_vdnn_all(std::move(step), cost, options));
  return std::move(best).take();
}

}  // namespace

// With the fastest algorithms, and where not even one sample fits so, with the smallest.
PlanResult plan_vdnn_plus(Step step, const CostModel& cost, const PlannerOptions& options) {
  const std::int64_t batch = step.options.batch;
  const bool cuts = may_cut(step, options);
  Best best(cost, kPriceOfCopies);
  PlannerOptions tried = options;
  for (const Algorithms algorithms : {Algorithms::fastest, Algorithms::smallest}) {
    tried.algorithms = algorithms;
    // Not all that moDNN fits into fits into vDNN.
    const auto rounds = [](std::int64_t all, std::int64_t samples) { return (all + samples - 1) / samples; };
    std::int64_t samples = cuts && options.memory ? evened(batch, modnn_sub_batch(step, cost, options)) : batch;
    while (!best.found()) {
      best.offer(plan_rounds(plan_vdnn, step, samples, cost, tried));
      if (!cuts || samples == 1) break;
      const std::int64_t more = rounds(batch, samples) + 1;
      samples = std::min(samples - 1, rounds(batch, more));
    }
  }
  // The floor is the same whether there is a plan or not.
  tried.memory = Bytes();
  if (cuts) best.offer(plan_rounds(plan_vdnn, step, 1, cost, tried));
  best.offer(plan_vdnn(std::move(step), cost, tried));
  return std::move(best).take();
}

}  // namespace tide
