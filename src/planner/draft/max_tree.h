// Bytes alive at each op under additions to ranges of ops: a tree of maxima.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tide {

class MaxTree {
 public:
  explicit MaxTree(const std::vector<std::int64_t>& values);

  // Adds to [first, last); an empty range is nothing.
  void add(std::size_t first, std::size_t last, std::int64_t amount);
  [[nodiscard]] std::int64_t peak() const { return nodes_[1].most; }
  // The first op with the peak.
  [[nodiscard]] std::int32_t peak_at() const;
  // The first op of [first, last) with more than `limit`; `last` where there is none.
  [[nodiscard]] std::size_t first_above(std::size_t first, std::size_t last, std::int64_t limit) const;
  // Behind the last op of [first, last) with more than `limit`; `first` where there is none.
  [[nodiscard]] std::size_t behind_last_above(std::size_t first, std::size_t last, std::int64_t limit) const;

 private:
  struct Node {
    std::int64_t most = 0, added = 0;  // of the range below, without what was added further up
  };
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  void add(std::size_t node, Range at, Range to, std::int64_t amount);
  [[nodiscard]] std::optional<std::size_t> find(std::size_t node, Range at, Range among, std::int64_t limit,
                                                bool from_left) const;

  std::size_t size_;
  std::vector<Node> nodes_;  // the children of node n are 2n and 2n + 1
};

}  // namespace tide
