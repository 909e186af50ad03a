// SuperNeurons' liveness analysis: a storage takes memory from the task that first writes
// it to the last task that reads it. The paper's runtime allocates from a heap as it goes;
// here the whole step is known, so the stays are packed ahead.
#include "planner/finish.h"
#include "planner/in_place.h"
#include "planner/policies.h"
#include "planner/techniques.h"

namespace tide {

PlanResult plan_liveness(Step step, const CostModel& cost, const PlannerOptions& options) {
  if (options.in_place) step = merge_in_place(std::move(step));
  const StepFacts facts(step, paper_checkpoints(), resting_storages(step, options));
  Draft draft = apply(facts, offloading(facts, {}));
  return finish_draft(std::move(step), std::move(draft), cost, options);
}

}  // namespace tide
