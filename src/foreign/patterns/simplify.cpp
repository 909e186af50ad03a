#include <array>
#include <cmath>

#include "foreign/patterns.h"

namespace tide {

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(b)); }

std::optional<Made> simplify(Operations& operations, const Operation& added) {
  constexpr std::array kPatterns{join_affine,     join_functions, join_rearrangements,
                                 hoist_functions, join_padding,   join_parameters};
  for (const auto pattern : kPatterns)
    if (const std::optional<Made> found = pattern(operations, added)) return found;
  return std::nullopt;
}

}  // namespace tide
