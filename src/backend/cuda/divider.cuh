// Division by a number that is known before a launch: of numbers below 2^31 by a multiplication, which spares the
// many instructions of a division.
#pragma once

#include <cstdint>

namespace tide::cuda {

struct Divider {
  std::int64_t by = 1;
  unsigned multiplier = 1;
  int shift = 0;

  // REQUIRES: by > 0.
  static Divider of(std::int64_t by) {
    Divider made{by, 0, 0};
    if (by >= kMost) return made;
    while ((std::int64_t{1} << made.shift) < by) ++made.shift;
    const auto divisor = static_cast<std::uint64_t>(by);
    made.multiplier =
        static_cast<unsigned>(((std::uint64_t{1} << 32U) * ((std::uint64_t{1} << made.shift) - divisor)) / divisor + 1);
    return made;
  }
  __device__ std::int64_t divide(std::int64_t value) const {
    if (value >= kMost || by >= kMost) return value / by;
    const auto low = static_cast<unsigned>(value);
    return (__umulhi(low, multiplier) + low) >> shift;
  }

 private:
  static constexpr std::int64_t kMost = std::int64_t{1} << 31;
};

}  // namespace tide::cuda
