#include "planner/search/rungs.h"

#include <algorithm>
#include <bit>

namespace tide {

Bytes Rungs::width(Bytes budget) const {
  const auto octave =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(budget.count(), 1))));
  // Addresses are multiples of the alignment: anything between two of them is of no use.
  return Bytes(std::max(octave / per_octave_, kAlignment));
}

Bytes Rungs::at_most(Bytes budget) const {
  const std::int64_t width_there = width(budget).count();
  return Bytes(budget.count() / width_there * width_there);
}

}  // namespace tide
