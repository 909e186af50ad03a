// A number of bytes: never negative, never wrapped. Also used for addresses within an
// arena, which are offsets in bytes from its start.
#pragma once

#include <compare>
#include <cstdint>

#include "base/checked.h"

namespace tide {

class Bytes {
 public:
  constexpr Bytes() = default;
  explicit Bytes(std::int64_t count) : count_(count) {
    if (count < 0) throw Error("a size of {} bytes is negative", count);
  }

  [[nodiscard]] constexpr std::int64_t count() const { return count_; }
  [[nodiscard]] constexpr std::size_t size() const { return static_cast<std::size_t>(count_); }
  [[nodiscard]] constexpr bool is_zero() const { return count_ == 0; }

  // The smallest multiple of `alignment` that holds this many bytes.
  [[nodiscard]] Bytes aligned(std::int64_t alignment = 256) const {
    return Bytes(checked_add(count_, alignment - 1) / alignment * alignment);
  }

  Bytes& operator+=(Bytes other) { return *this = *this + other; }
  // REQUIRES: other <= *this (throws otherwise).
  Bytes& operator-=(Bytes other) { return *this = *this - other; }

  friend Bytes operator+(Bytes a, Bytes b) { return Bytes(checked_add(a.count_, b.count_)); }
  friend Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend Bytes operator*(Bytes a, std::int64_t times) { return Bytes(checked_multiply(a.count_, times)); }
  friend constexpr auto operator<=>(Bytes a, Bytes b) = default;

 private:
  std::int64_t count_ = 0;
};

// Every address in an arena is a multiple of this, and sizes are counted rounded up to it.
inline constexpr std::int64_t kAlignment = 256;

}  // namespace tide
