// vDNN's plans: whose inputs leave, and which algorithms convolutions run with.
#pragma once

#include "planner/planner.h"

namespace tide {

enum class Algorithms : std::uint8_t { fastest, smallest };  // smallest: in workspace

struct VdnnOptions {
  Algorithms algorithms = Algorithms::fastest;
};

enum class VdnnLayers : std::uint8_t { convolutions, all };
[[nodiscard]] PlanResult plan_vdnn(Step step, const CostModel& cost, const PlanningContext& context, VdnnLayers layers,
                                   Algorithms algorithms);
// What no such plan beats, whatever the budget and the algorithms.
[[nodiscard]] double vdnn_seconds_at_least(const Step& step, const CostModel& cost, const PlanningContext& context,
                                           VdnnLayers layers);

}  // namespace tide
