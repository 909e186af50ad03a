// FNV-1a, 64 bits: a number that tells contents apart. Not against anyone who means harm.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace tide {

class Fnv {
 public:
  constexpr void add_byte(std::uint8_t byte) { add_unit(byte); }
  constexpr void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<std::uint8_t>(c));
  }
  // The bits of floats, word by word.
  void add(std::span<const float> values) {
    for (const float value : values) add_unit(std::bit_cast<std::uint32_t>(value));
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

 private:
  constexpr void add_unit(std::uint64_t unit) { value_ = (value_ ^ unit) * 0x100000001b3U; }

  std::uint64_t value_ = 0xcbf29ce484222325U;
};

[[nodiscard]] constexpr std::uint64_t fnv_of(std::string_view text) {
  Fnv hash;
  hash.add(text);
  return hash.value();
}

}  // namespace tide
