// How much is alive at each op.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tide {

// Sums over stays, each from its first to its last op, both included. What is there at the start counts from the first
// op on, what outlives the end up to the last.
class AliveSum {
 public:
  explicit AliveSum(std::size_t ops) : sums_(ops + 1, 0) {}

  void add(std::int32_t first, std::int32_t last, std::int64_t amount) {
    sums_[clamped(first)] += amount;
    sums_[clamped(last + 1)] -= amount;
  }
  // By op.
  [[nodiscard]] std::vector<std::int64_t> take() && {
    for (std::size_t i = 1; i < sums_.size(); ++i) sums_[i] += sums_[i - 1];
    sums_.pop_back();
    return std::move(sums_);
  }

 private:
  [[nodiscard]] std::size_t clamped(std::int32_t op) const {
    return std::min(static_cast<std::size_t>(std::max(op, 0)), sums_.size() - 1);
  }

  std::vector<std::int64_t> sums_;  // changes, until they are taken
};

}  // namespace tide
