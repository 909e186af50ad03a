// Ranks whose others bring nothing but zeros: sums are what they were.
#pragma once

#include <algorithm>

#include "backend/collectives.h"
#include "step/buckets.h"

namespace tide::test {

class AloneAmongRanks final : public Collectives {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] Kernel prepare(const Step& step, TaskId task) override {
    const auto operands = step.operands_of(task);
    const Bytes own = bytes_of(step, operands.front()), all = bytes_of(step, operands.back());
    const bool scatters = step.task(task).kind == TaskKind::scatter;
    return [own, all, gaps = scatters ? gaps_of(step, task, 0) : std::vector<ByteRange>()](const Launch& launch) {
      if (launch.operands[1] == launch.operands[0]) return;
      const std::size_t kept = std::min(own.size(), all.size());
      std::copy_n(launch.operands[0], kept, launch.operands[1]);
      std::fill_n(launch.operands[1] + kept, all.size() - kept, std::byte{});  // of the others
      for (const ByteRange& gap : gaps)
        std::fill(launch.operands[1] + gap.begin.size(), launch.operands[1] + gap.end.size(), std::byte{});
    };
  }
};

}  // namespace tide::test
