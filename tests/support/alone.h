// Ranks whose others bring nothing but zeros: sums are what they were.
#pragma once

#include <algorithm>

#include "backend/collectives.h"

namespace tide::test {

class AloneAmongRanks final : public Collectives {
 public:
  [[nodiscard]] Kernel prepare(const Step& step, TaskId task) override {
    const auto operands = step.operands_of(task);
    const Bytes own = bytes_of(step, operands.front()), all = bytes_of(step, operands.back());
    return [own, all](const Launch& launch) {
      if (launch.operands[1] == launch.operands[0]) return;
      std::copy_n(launch.operands[0], own.size(), launch.operands[1]);
      std::fill_n(launch.operands[1] + own.size(), all.size() - own.size(), std::byte{});  // of the others
    };
  }
};

}  // namespace tide::test
