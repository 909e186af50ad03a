// Placement loses a little: what fits by bytes may not fit by address. So planners aim lower until it does.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/bytes.h"

namespace tide {

// In percent of the budget, or of what was aimed for first.
namespace ladder {
inline constexpr std::initializer_list<std::int64_t> kHolds{100, 97, 93, 85};          // finishing a draft
inline constexpr std::initializer_list<std::int64_t> kHoldsInHurry{100, 95, 88};       // the same for one of many
inline constexpr std::initializer_list<std::int64_t> kRepacked{100, 95};               // what a runtime moves
inline constexpr std::initializer_list<std::int64_t> kModnn{100, 98, 96, 94, 91, 88};  // moDNN by bytes alone
inline constexpr std::initializer_list<std::int64_t> kJoint{100, 96, 92, 85};          // copies that wait need room
inline constexpr std::initializer_list<std::int64_t> kBehind{100, 90, 75, 50, 0};      // a tier behind the host
inline constexpr std::int64_t kLowestJoint = *(kJoint.end() - 1);
}  // namespace ladder

[[nodiscard]] inline Bytes percent_of(Bytes memory, std::int64_t percent) {
  return Bytes(memory.count() / 100 * percent);
}

// Calls attempt(percent) for each rung until it returns true: that it fits, or that there is no point in going on.
template <typename Attempt>
bool aim_lower(std::initializer_list<std::int64_t> percents, Attempt&& attempt) {
  for (const std::int64_t percent : percents)
    if (attempt(percent)) return true;
  return false;
}

}  // namespace tide
