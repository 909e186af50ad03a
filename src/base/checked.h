// Size arithmetic that throws instead of wrapping. Every count and every byte total in
// the project comes through here or through Bytes, which is built on it.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace tide {

inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw Error("size overflow: {} x {} does not fit in 63 bits; reduce the batch or the shapes", a, b);
  return result;
}

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    throw Error("size overflow: {} + {} does not fit in 63 bits; reduce the batch or the shapes", a, b);
  return result;
}

}  // namespace tide
