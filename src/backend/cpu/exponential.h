// exp and tanh as straight-line code that compilers turn into vector instructions; within
// a few units in the last place. Finite for every finite argument; a NaN stays one.
#pragma once

#include <bit>
#include <cstdint>

#include "backend/cpu/clones.h"

namespace tide::cpu {

// x = n ln 2 + r with |r| <= ln 2 / 2; then exp(x) = 2^n (1 + m) with m = exp(r) - 1.
struct SplitExponential {
  float power;     // 2^n
  float mantissa;  // m
};

TIDE_INLINE SplitExponential split_exponential(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const float shifted = x * 1.44269504F + 12582912.0F;
  const float n = shifted - 12582912.0F;
  const std::int32_t integer = std::bit_cast<std::int32_t>(shifted) - 0x4B400000;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float series = 1.0F / 5040;
  series = series * r + 1.0F / 720;
  series = series * r + 1.0F / 120;
  series = series * r + 1.0F / 24;
  series = series * r + 1.0F / 6;
  series = series * r + 0.5F;
  return {std::bit_cast<float>((integer + 127) << 23), series * r * r + r};
}

TIDE_INLINE float exponential(float x) {
  const SplitExponential e = split_exponential(x);
  return e.power * e.mantissa + e.power;
}

TIDE_INLINE float sigmoid(float x) { return 1.0F / (1.0F + exponential(-x)); }

// Through exp(2x) - 1, which is accurate near 0 too.
TIDE_INLINE float hyperbolic_tangent(float x) {
  const float doubled = 2 * x > 40.0F ? 40.0F : 2 * x;
  const SplitExponential e = split_exponential(doubled);
  const float minus_one = e.power * e.mantissa + (e.power - 1.0F);
  return minus_one / (minus_one + 2.0F);
}

}  // namespace tide::cpu
