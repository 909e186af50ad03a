// vDNN+, moDNN's baseline: vDNN in sub-batches of moDNN's size.
#include <algorithm>

#include "planner/modnn/batch.h"
#include "planner/policy.h"
#include "planner/search/keeper.h"
#include "planner/search/rounds.h"
#include "planner/vdnn/vdnn.h"

namespace tide {
namespace {

template <Algorithms algorithms>
PlanResult plan_either(Step step,  // NOLINT(performance-unnecessary-value-param): a policy's function
                       const CostModel& cost, const PlanningContext& context) {
  Keeper keeper(cost, kMovesLess);
  keeper.consider("convolutions", [&] { return plan_vdnn(step, cost, context, VdnnLayers::convolutions, algorithms); });
  keeper.consider("all layers", [&] { return plan_vdnn(step, cost, context, VdnnLayers::all, algorithms); });
  return std::move(keeper).take();
}

// With the fastest algorithms, and where not even one sample fits so, with the smallest.
PlanResult plan_vdnn_plus(Step step, const CostModel& cost, const PlanningContext& context) {
  const std::int64_t batch = step.options.batch;
  const bool cuts = may_cut(step, context);
  Keeper keeper(cost, kMovesLess);
  for (const PolicyFunction either : {plan_either<Algorithms::fastest>, plan_either<Algorithms::smallest>}) {
    // Not all that moDNN fits into fits into vDNN.
    const auto rounds = [](std::int64_t all, std::int64_t samples) { return (all + samples - 1) / samples; };
    std::int64_t samples =
        cuts && context.memory[Tier::device] ? evened(batch, modnn_sub_batch(step, cost, context)) : batch;
    while (!keeper.found()) {
      keeper.consider(fmt::format("{} samples", samples),
                      [&] { return plan_rounds(either, step, samples, cost, context); });
      if (!cuts || samples == 1) break;
      const std::int64_t more = rounds(batch, samples) + 1;
      samples = std::min(samples - 1, rounds(batch, more));
    }
  }
  constexpr PolicyFunction kSmallest = plan_either<Algorithms::smallest>;
  // Gradients that are added up may take more than larger batches do.
  if (!keeper.found() && cuts) keeper.consider("the whole batch", [&] { return kSmallest(step, cost, context); });
  PlanResult result = std::move(keeper).take();
  if (result.plan && context.floor_is_known) return result;
  // The floor is that of what is tried at every budget, whether there is a plan or not.
  PlanningContext least = context;
  least.memory[Tier::device] = Bytes();
  Keeper floors(cost);
  if (cuts) floors.consider("the floor, cut", [&] { return plan_rounds(kSmallest, step, 1, cost, least); });
  floors.consider("the floor", [&] { return kSmallest(step, cost, least); });
  result.floor[Tier::device] = floors.floor();
  result.bottleneck_task = floors.best().bottleneck_task;
  // Which sizes between the two are tried depends on the budget: that one of them takes less does not count.
  if (context.memory[Tier::device] && *context.memory[Tier::device] < floors.floor()) {
    result.plan.reset();
    result.seconds.reset();
  }
  return result;
}

double vdnn_plus_at_least(const Step& step, const CostModel& cost, const PlanningContext& context) {
  return std::min(vdnn_seconds_at_least(step, cost, context, VdnnLayers::convolutions),
                  vdnn_seconds_at_least(step, cost, context, VdnnLayers::all));
}

}  // namespace

Policy vdnn_plus_policy() {
  return {.name = "vdnn+",
          .description = "whichever of the two is faster, in sub-batches as large as moDNN's",
          .plan = plan_vdnn_plus,
          .rank = 10,
          .seconds_at_least = vdnn_plus_at_least,
          .cuts = true};
}

}  // namespace tide
