// SuperNeurons' liveness analysis: a storage takes memory from the task that first writes
// it to the last task that reads it. The paper's runtime allocates from a heap as it goes;
// here the whole step is known, so the stays are packed ahead.
#include "planner/policies/liveness.h"

#include "planner/draft/in_place.h"
#include "planner/finish/finish.h"
#include "planner/policy.h"
#include "planner/replay/techniques.h"

namespace tide {

PlanResult plan_liveness(Step step, const CostModel& cost, const PlanningContext& context) {
  if (context.in_place) step = merge_in_place(std::move(step));
  const StepFacts facts(step, paper_checkpoints(), resting_storages(step, context));
  Draft draft = apply(facts, offloading(facts, {}));
  return finish_draft(step, std::move(draft), cost, context);
}

Policy liveness_policy() {
  return {.name = "liveness",
          .description = "memory is held from first write to last read, at addresses packed by lifetime",
          .plan = plan_liveness,
          .rank = 4,
          .moves = false};
}

}  // namespace tide
