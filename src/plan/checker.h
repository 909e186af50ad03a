// The judge. It trusts nobody and shares nothing with the planners: from a plan alone it
// proves that following it gives every task the values it needs and never exceeds a
// budget, whatever the lanes' speeds:
//   - every view lies within its tensor, and parts that are written are all of it;
//   - every op is well formed, and every task of the step runs exactly once (replays: as
//     often as the plan likes);
//   - every read finds a live, complete copy of the right value, made by an op that is
//     known to be over; nothing is overwritten while an op that may still be running
//     reads it;
//   - no two stays that the lanes allow to be alive together overlap in address,
//     workspaces and copies in flight included;
//   - every tier's budget holds to the byte;
//   - persistent storages leave the step where they entered it, with their new value, so that the next step can
//     follow.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace tide {

enum class FindingKind : std::uint8_t {
  malformed,     // an id, index, lane, tier, wait or interval that makes no sense
  missing_task,  // a task of the step never runs, or runs twice
  not_resident,  // an operand, copy source or copy target is not in its tier
  wrong_value,   // an operand is there, but holds another or an incomplete value
  race,          // two lanes touch the same bytes with no order between them
  overlap,       // two stays share addresses while both may be alive
  over_budget,   // a tier's highest address is beyond its budget
  bad_exit,      // a persistent storage does not end where and as it must
  // Of several ranks (check_together.h):
  apart,     // they do not do the same things together, in one order
  deadlock,  // they wait for each other in a circle
};
[[nodiscard]] std::string_view finding_name(FindingKind kind);

struct Finding {
  FindingKind kind;
  std::string text;  // one line: what, where
};

// Empty: the plan is proved. Stops collecting after `limit` findings.
[[nodiscard]] std::vector<Finding> check(const Plan& plan, std::size_t limit = 16);

// Throws an Error with the first finding, if there is any.
void require_valid(const Plan& plan);

}  // namespace tide
