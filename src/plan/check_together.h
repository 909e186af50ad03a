// The judge of several ranks' plans together, each of which check() has judged alone. It trusts nobody: from lanes,
// waits and collectives alone it proves that
//   - every rank does the same things together with the others, in one order, with the same bytes;
//   - no ranks wait for each other in a circle, whatever the lanes' speeds.
#pragma once

#include <span>

#include "plan/checker.h"

namespace tide {

// Empty: the set is proved. Stops collecting after `limit` findings.
[[nodiscard]] std::vector<Finding> check_together(std::span<const Plan* const> plans, std::size_t limit = 16);

// Throws an Error with the first finding, if there is any.
void require_valid_together(std::span<const Plan* const> plans);

}  // namespace tide
