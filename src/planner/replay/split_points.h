// Where the forward pass of any graph can be cut into segments: behind a task where little is
// waiting for later tasks. What waits there is kept, and each segment can be run again from it.
//
//   waiting   1   2   2   1   2   2   1        a residual network: behind each addition
//             |  block    |  block    |
#pragma once

#include "planner/replay/mirror.h"

namespace tide {

struct SplitPoint {
  std::int32_t position = 0;  // of the last task before the cut
  std::int64_t waiting = 0;   // bytes that later forward tasks read
  std::int64_t before = 0;    // bytes made up to there that the backward pass needs
};

struct Cut {
  std::int32_t position = 0;
  std::int32_t depth = 0;  // the count of what waits there
};

class SplitPoints {
 public:
  // Candidates are the points where locally least is waiting.
  SplitPoints(const StepFacts& facts, const std::vector<bool>& replayable);

  [[nodiscard]] std::span<const SplitPoint> points() const { return points_; }
  [[nodiscard]] std::int64_t total() const { return total_; }  // `before` at the end of the pass
  // Of points [first, last), the first of those where least is waiting.
  [[nodiscard]] std::size_t narrowest(std::size_t first, std::size_t last) const;
  // The first point with more than `bytes` before it.
  [[nodiscard]] std::size_t first_above(std::int64_t bytes) const;

  // Lowers the counts of what waits at the cuts to their depth. The bytes that are kept for good.
  std::int64_t keep_at(std::span<const Cut> cuts, MirrorCounts& counts) const;

 private:
  struct Waiting {
    TaskId task;
    std::int32_t first = 0, last = 0;  // positions behind which it waits
    std::int64_t bytes = 0;
  };
  std::vector<SplitPoint> points_;
  std::vector<Waiting> waiting_;
  std::int64_t total_ = 0;
};

}  // namespace tide
