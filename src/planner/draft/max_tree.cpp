#include "planner/draft/max_tree.h"

#include <algorithm>
#include <bit>

namespace tide {

MaxTree::MaxTree(const std::vector<std::int64_t>& values)
    : size_(std::bit_ceil(std::max<std::size_t>(values.size(), 1))), nodes_(2 * size_) {
  for (std::size_t i = 0; i < size_; ++i) nodes_[size_ + i].most = i < values.size() ? values[i] : INT64_MIN / 2;
  for (std::size_t node = size_; node-- > 1;)
    nodes_[node].most = std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most);
}

void MaxTree::add(std::size_t first, std::size_t last, std::int64_t amount) {
  if (first < last) add(1, {0, size_}, {first, last}, amount);
}

void MaxTree::add(std::size_t node, Range at, Range to, std::int64_t amount) {
  if (to.begin <= at.begin && at.end <= to.end) {
    nodes_[node].most += amount;
    nodes_[node].added += amount;
    return;
  }
  const std::size_t middle = (at.begin + at.end) / 2;
  if (to.begin < middle) add(2 * node, {at.begin, middle}, to, amount);
  if (to.end > middle) add(2 * node + 1, {middle, at.end}, to, amount);
  nodes_[node].most = std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most) + nodes_[node].added;
}

std::int32_t MaxTree::peak_at() const {
  std::size_t node = 1;
  while (node < size_) node = nodes_[2 * node].most >= nodes_[2 * node + 1].most ? 2 * node : 2 * node + 1;
  return static_cast<std::int32_t>(node - size_);
}

std::size_t MaxTree::first_above(std::size_t first, std::size_t last, std::int64_t limit) const {
  return first < last ? find(1, {0, size_}, {first, last}, limit, true).value_or(last) : last;
}

std::size_t MaxTree::behind_last_above(std::size_t first, std::size_t last, std::int64_t limit) const {
  const auto found = first < last ? find(1, {0, size_}, {first, last}, limit, false) : std::nullopt;
  return found ? *found + 1 : first;
}

// The limit is that of the node's own numbers: less what was added above it.
std::optional<std::size_t> MaxTree::find(std::size_t node, Range at, Range among, std::int64_t limit,
                                         bool from_left) const {
  if (among.end <= at.begin || at.end <= among.begin || nodes_[node].most <= limit) return std::nullopt;
  if (at.end - at.begin == 1) return at.begin;
  const std::size_t middle = (at.begin + at.end) / 2;
  for (const bool left : {from_left, !from_left}) {
    const std::size_t child = left ? 2 * node : 2 * node + 1;
    const Range below = left ? Range{at.begin, middle} : Range{middle, at.end};
    if (const auto found = find(child, below, among, limit - nodes_[node].added, from_left)) return found;
  }
  return std::nullopt;
}

}  // namespace tide
