// vDNN for the inputs of all layers.
#include "planner/policy.h"
#include "planner/vdnn/vdnn.h"

namespace tide {
namespace {

PlanResult plan_vdnn_all(Step step, const CostModel& cost, const PlanningContext& context) {
  return plan_vdnn(std::move(step), cost, context, VdnnLayers::all, context.policy.get<VdnnOptions>().algorithms);
}

double vdnn_all_at_least(const Step& step, const CostModel& cost, const PlanningContext& context) {
  return vdnn_seconds_at_least(step, cost, context, VdnnLayers::all);
}

std::int32_t vdnn_all_swappable(const Step& step, const PlanningContext& context) {
  return vdnn_swappable(step, context, VdnnLayers::all);
}

}  // namespace

Policy vdnn_all_policy() {
  return {.name = "vdnn-all",
          .description = "the same for the inputs of all layers",
          .plan = plan_vdnn_all,
          .rank = 8,
          .seconds_at_least = vdnn_all_at_least,
          .swappable = vdnn_all_swappable};
}

}  // namespace tide
