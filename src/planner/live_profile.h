// How many bytes are alive at each op of a draft, kept up to date while stays are cut short: a
// segment tree over the ops that adds to ranges and finds the largest value.
#pragma once

#include <cstdint>
#include <vector>

namespace tide {

class LiveProfile {
 public:
  explicit LiveProfile(const std::vector<std::int64_t>& live);

  // Adds to [first, last]; an empty range is nothing.
  void add(std::int32_t first, std::int32_t last, std::int64_t bytes);
  [[nodiscard]] std::int64_t peak() const { return nodes_[1].most; }
  // The first op with the peak.
  [[nodiscard]] std::int32_t peak_at() const;

 private:
  struct Node {
    std::int64_t most = 0, added = 0;  // of the range below, without what was added further up
  };
  void build(std::size_t node, std::size_t begin, std::size_t end, const std::vector<std::int64_t>& live);
  void add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
           std::int64_t bytes);

  std::size_t size_;
  std::vector<Node> nodes_;
};

}  // namespace tide
