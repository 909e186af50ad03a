// The value in the middle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tide {

// Of an even number of values the upper of the two in the middle; 0 of none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace tide
