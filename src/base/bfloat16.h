// The upper half of a float, rounded to nearest even. For storage; arithmetic is in floats.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tide {

class BFloat16 {
 public:
  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    // A NaN must not round up to infinity.
    const std::uint32_t rounded = std::isnan(value) ? bits | 0x400000U : bits + 0x7FFFU + ((bits >> 16U) & 1U);
    upper_ = static_cast<std::uint16_t>(rounded >> 16U);
  }
  explicit BFloat16(double value) : BFloat16(static_cast<float>(value)) {}
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(upper_) << 16U); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

 private:
  std::uint16_t upper_ = 0;
};
static_assert(sizeof(BFloat16) == 2);

}  // namespace tide
