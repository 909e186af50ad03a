// A sum in one binary tree over its addends: pairs, pairs of pairs, and so on. Those who add up equal parts of them, a
// power of two, and go on with the sums get the same bits.
#pragma once

#include <cstddef>
#include <span>

namespace tide {

// The addends are used up. REQUIRES: there is one.
template <typename Value>
[[nodiscard]] Value tree_sum(std::span<Value> addends) {
  for (std::size_t width = 1; width < addends.size(); width *= 2)
    for (std::size_t i = 0; i + width < addends.size(); i += 2 * width) addends[i] += addends[i + width];
  return addends.front();
}

}  // namespace tide
