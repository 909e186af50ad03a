// The outline of stacked boxes over time: heights over positions, with range maximum and
// range raise in logarithmic time (a lazy segment tree).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tide {

class Skyline {
 public:
  explicit Skyline(std::size_t positions);

  // The highest point over [from, to].
  [[nodiscard]] std::int64_t highest(std::size_t from, std::size_t to) const;
  // Sets the height over [from, to]. REQUIRES: height >= highest(from, to).
  void raise(std::size_t from, std::size_t to, std::int64_t height);

 private:
  [[nodiscard]] std::int64_t highest(std::size_t node, std::size_t begin, std::size_t end, std::size_t from,
                                     std::size_t to) const;
  void raise(std::size_t node, std::size_t begin, std::size_t end, std::size_t from, std::size_t to,
             std::int64_t height);

  std::size_t positions_;
  std::vector<std::int64_t> highest_;  // of the node's range
  std::vector<std::int64_t> whole_;    // a height that covers the node's whole range
};

}  // namespace tide
