#include "planner/live_profile.h"

#include <algorithm>
#include <bit>

namespace tide {

LiveProfile::LiveProfile(const std::vector<std::int64_t>& live)
    : size_(std::bit_ceil(std::max<std::size_t>(live.size(), 1))), nodes_(2 * size_) {
  build(1, 0, size_, live);
}

void LiveProfile::build(std::size_t node, std::size_t begin, std::size_t end, const std::vector<std::int64_t>& live) {
  if (end - begin == 1) {
    nodes_[node].most = begin < live.size() ? live[begin] : INT64_MIN / 2;
    return;
  }
  const std::size_t middle = (begin + end) / 2;
  build(2 * node, begin, middle, live);
  build(2 * node + 1, middle, end, live);
  nodes_[node].most = std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most);
}

void LiveProfile::add(std::int32_t first, std::int32_t last, std::int64_t bytes) {
  if (first > last) return;
  add(1, 0, size_, static_cast<std::size_t>(std::max(first, 0)), static_cast<std::size_t>(std::max(last, 0)), bytes);
}

void LiveProfile::add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                      std::int64_t bytes) {
  if (last < begin || first >= end) return;
  if (first <= begin && end - 1 <= last) {
    nodes_[node].most += bytes;
    nodes_[node].added += bytes;
    return;
  }
  const std::size_t middle = (begin + end) / 2;
  add(2 * node, begin, middle, first, last, bytes);
  add(2 * node + 1, middle, end, first, last, bytes);
  nodes_[node].most = std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most) + nodes_[node].added;
}

std::int32_t LiveProfile::peak_at() const {
  std::size_t node = 1;
  while (node < size_) node = nodes_[2 * node].most >= nodes_[2 * node + 1].most ? 2 * node : 2 * node + 1;
  return static_cast<std::int32_t>(node - size_);
}

}  // namespace tide
