// When swapped inputs should come back: the search of Y. Kim et al. (2018), section III.C, on the simulator instead of
// the first iterations of a training.
#pragma once

#include <functional>

#include "planner/planner.h"
#include "planner/vdnn/swaps.h"

namespace tide {

// Step 1: with late triggers (right before the layer that needs it), the batch grows by `more` from `more` on until it
// does not fit. The largest that fits; 0 where the first does not. `most` is where it stops looking.
[[nodiscard]] std::int64_t largest_late_batch(const std::function<bool(std::int64_t batch)>& fits, std::int64_t more,
                                              std::int64_t most);
// Throws an Error where that is below the batch that was asked for.
void require_late_batch(std::int64_t asked, std::int64_t largest, std::int64_t more);

struct TriggersFound {
  TriggerOptions triggers;
  PlanResult result;  // with them; no plan: not even late triggers fit
  double seconds = 0;
};
using PlanTriggers = std::function<PlanResult(const TriggerOptions&)>;
using TimePlan = std::function<double(const Plan&)>;

// Where many leave, triggers side by side are searched for together. Step 2: each trigger, that of the input needed
// first to begin with, as early as memory allows. The range is halved, as an earlier trigger takes no less memory.
// `swaps` is how many inputs leave, `most` how many layers a trigger can be early.
[[nodiscard]] TriggersFound earliest_triggers(const PlanTriggers& plan, std::size_t swaps, std::int32_t most);

// Step 3: each, in the same order, as late as takes no more time; of a dozen places between early and late. Beside
// others a later trigger may take less time, and that is then what the next are held against.
[[nodiscard]] TriggersFound latest_triggers(const PlanTriggers& plan, const TimePlan& seconds, TriggersFound earliest);

}  // namespace tide
