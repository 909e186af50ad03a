// Triggers as measured steps ask for them: the paper finds them in the first iterations of a training, here these
// correct what was found on the simulator (triggers.h).
#pragma once

#include "plan/timeline.h"
#include "planner/ranks/triggers.h"

namespace tide {

// How one swapped layer's way back went in a measured step.
struct SwapInTiming {
  std::size_t copy = 0, needed_by = 0;  // ops
  double waited = 0;                    // so long the op that needs it was held up by the copy alone
  double spare = 0;                     // or so long before that op it was over
  bool at_once = false;                 // it began as soon as its trigger was there: an earlier one would have helped
};
// By layer that is swapped, in the order in which they leave. REQUIRES: a plan of one phase that was made with
// triggers, and a timeline of it.
[[nodiscard]] std::vector<SwapInTiming> swap_in_timings(const Plan& plan, const Timeline& measured);

// Where an op waited for a copy that began with its trigger, the trigger is so many layers earlier as the wait is long,
// at least one; where a copy was there long before, so many later as half of that time is long. Times below
// kOfNoMatter of the step are left alone, and so are copies without a trigger. REQUIRES: as above, with `triggers`.
inline constexpr double kOfNoMatter = 0.005;
[[nodiscard]] TriggerOptions corrected_triggers(const Plan& plan, const Timeline& measured,
                                                const TriggerOptions& triggers);

// As many of the corrections as memory allows: all of them, or else one by one, those that need less memory first, and
// half of a move where all of it is too much. The result has no plan where none of them does; `seconds` is not set.
[[nodiscard]] TriggersFound apply_corrections(const PlanTriggers& plan, const TriggerOptions& now,
                                              const TriggerOptions& wanted);

}  // namespace tide
