#include "memory/skyline.h"

#include <algorithm>

namespace tide {

Skyline::Skyline(std::size_t positions)
    : positions_(positions), highest_(4 * positions + 4, 0), whole_(4 * positions + 4, 0) {}

std::int64_t Skyline::highest(std::size_t from, std::size_t to) const {
  return highest(1, 0, positions_ - 1, from, to);
}

void Skyline::raise(std::size_t from, std::size_t to, std::int64_t height) {
  raise(1, 0, positions_ - 1, from, to, height);
}

// Heights only ever grow, so a height that covers a whole node never has to be pushed
// down: the maximum along the path from the root is enough.
std::int64_t Skyline::highest(std::size_t node, std::size_t begin, std::size_t end, std::size_t from,
                              std::size_t to) const {
  if (from <= begin && end <= to) return highest_[node];
  const std::size_t middle = (begin + end) / 2;
  std::int64_t result = whole_[node];
  if (from <= middle) result = std::max(result, highest(2 * node, begin, middle, from, to));
  if (to > middle) result = std::max(result, highest(2 * node + 1, middle + 1, end, from, to));
  return result;
}

void Skyline::raise(std::size_t node, std::size_t begin, std::size_t end, std::size_t from, std::size_t to,
                    std::int64_t height) {
  highest_[node] = std::max(highest_[node], height);
  if (from <= begin && end <= to) {
    whole_[node] = std::max(whole_[node], height);
    return;
  }
  const std::size_t middle = (begin + end) / 2;
  if (from <= middle) raise(2 * node, begin, middle, from, to, height);
  if (to > middle) raise(2 * node + 1, middle + 1, end, from, to, height);
}

}  // namespace tide
