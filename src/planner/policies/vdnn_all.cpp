// vDNN for the inputs of all layers.
#include "planner/policy.h"
#include "planner/vdnn/vdnn.h"

namespace tide {
namespace {

PlanResult plan_vdnn_all(Step step, const CostModel& cost, const PlanningContext& context) {
  return plan_vdnn(std::move(step), cost, context, VdnnLayers::all, context.policy.get<VdnnOptions>().algorithms);
}

PlanResult plan_smallest_vdnn_all(Step step, const CostModel& cost, const PlanningContext& context) {
  return plan_vdnn(std::move(step), cost, context, VdnnLayers::all, Algorithms::smallest);
}

}  // namespace

Policy vdnn_all_policy() {
  return {.name = "vdnn-all",
          .description = "the same for the inputs of all layers",
          .plan = plan_vdnn_all,
          .rank = 8,
          .plan_smallest = plan_smallest_vdnn_all};
}

}  // namespace tide
