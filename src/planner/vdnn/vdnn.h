// vDNN's plans: whose inputs leave, when they come back, and which algorithms convolutions run with.
#pragma once

#include "planner/planner.h"
#include "planner/vdnn/swaps.h"

namespace tide {

enum class Algorithms : std::uint8_t { fastest, smallest };  // smallest: in workspace

struct VdnnOptions {
  Algorithms algorithms = Algorithms::fastest;
};

enum class VdnnLayers : std::uint8_t { convolutions, all };
[[nodiscard]] PlanResult plan_vdnn(Step step, const CostModel& cost, const PlanningContext& context, VdnnLayers layers,
                                   Algorithms algorithms);
// How many layers' inputs leave where nothing is staggered.
[[nodiscard]] std::int32_t vdnn_swappable(const Step& step, const PlanningContext& context, VdnnLayers layers);
// What no such plan beats, whatever the budget and the algorithms.
[[nodiscard]] double vdnn_seconds_at_least(const Step& step, const CostModel& cost, const PlanningContext& context,
                                           VdnnLayers layers);

}  // namespace tide
