// vDNN for the inputs of convolutions.
#include <array>

#include "base/names.h"
#include "planner/policy.h"
#include "planner/vdnn/vdnn.h"

namespace tide {
namespace {

PlanResult plan_vdnn_conv(Step step, const CostModel& cost, const PlanningContext& context) {
  return plan_vdnn(std::move(step), cost, context, VdnnLayers::convolutions,
                   context.policy.get<VdnnOptions>().algorithms);
}

double vdnn_conv_at_least(const Step& step, const CostModel& cost, const PlanningContext& context) {
  return vdnn_seconds_at_least(step, cost, context, VdnnLayers::convolutions);
}

std::int32_t vdnn_conv_swappable(const Step& step, const PlanningContext& context) {
  return vdnn_swappable(step, context, VdnnLayers::convolutions);
}

constexpr std::array kVdnnConvFlags{
    PolicyOption{"--algorithms", "vdnn-conv, vdnn-all: fastest, or smallest in workspace", "fastest",
                 PolicyOption::Form::value,
                 [](PolicyOptions& options, const std::string& text) {
                   options.set<VdnnOptions>().algorithms =
                       find_name<Algorithms>({"fastest", "smallest"}, text, "choice of algorithms");
                 }},
};

}  // namespace

Policy vdnn_conv_policy() {
  return {.name = "vdnn-conv",
          .description = "inputs of convolutions leave and come back, each copy in step with one layer (vDNN)",
          .plan = plan_vdnn_conv,
          .rank = 7,
          .seconds_at_least = vdnn_conv_at_least,
          .swappable = vdnn_conv_swappable,
          .options = kVdnnConvFlags};
}

}  // namespace tide
