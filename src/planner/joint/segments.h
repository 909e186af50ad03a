// Where a step can be cut into segments that are run again one by one: between two of them a
// single tensor is alive, the head of the second.
//
//   conv -> bn -> conv -> bn -> add -> conv -> bn -> ...
//      segment, its head kept    ^ head of the next
#pragma once

#include "planner/draft/facts.h"

namespace tide {

class Segments {
 public:
  explicit Segments(const StepFacts& facts);

  // Heads by tensor, such that what lies between two of them and can be dropped adds up to
  // `bytes` at most where the cuts allow it. Zero: every cut is a head.
  [[nodiscard]] std::vector<bool> heads(std::int64_t bytes) const;
  // The segment size with which heads and one segment together are smallest.
  [[nodiscard]] std::int64_t balanced() const;
  [[nodiscard]] std::size_t cuts() const { return cuts_.size(); }
  [[nodiscard]] std::int64_t largest() const { return total_; }

 private:
  struct Cut {
    TensorId tensor;
    std::int64_t bytes;   // its own
    std::int64_t before;  // droppable bytes made up to it
  };
  std::vector<Cut> cuts_;
  std::int64_t total_ = 0;
  std::size_t tensors_;
};

}  // namespace tide
