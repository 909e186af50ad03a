// The policy functions, one per file. A new policy is a new file and a line in registry.cpp.
#pragma once

#include "planner/planner.h"

namespace tide {

PlanResult plan_baseline(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_inplace(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_sharing(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_liveness(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_offload(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_superneurons(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_vdnn_conv(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_vdnn_all(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_vdnn_plus(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_modnn(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_drop_cheap(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_sublinear(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_recursive(Step step, const CostModel& cost, const PlannerOptions& options);
PlanResult plan_whole(Step step, const CostModel& cost,
                      const PlannerOptions& options);  // auto, with the batch as it is
PlanResult plan_auto(Step step, const CostModel& cost, const PlannerOptions& options);

}  // namespace tide
