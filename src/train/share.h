// How samples are divided among ranks: each takes one contiguous part, the first ones one sample more where it does
// not come out even.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tide {

struct SampleRange {
  std::int64_t first = 0, count = 0;

  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

[[nodiscard]] constexpr SampleRange share_of(std::int64_t samples, std::int64_t rank, std::int64_t ranks) {
  const std::int64_t each = samples / ranks, more = samples % ranks;
  return {rank * each + std::min(rank, more), each + (rank < more ? 1 : 0)};
}

}  // namespace tide
