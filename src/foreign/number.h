// A whole number of a foreign graph's shapes, which may depend on the batch: constant + batches * B, with B at least 1.
// What cannot be written so, or does not fit in 63 bits, is nothing: never a wrong number.
#pragma once

#include <cstdint>
#include <optional>

namespace tide {

struct Number {
  std::int64_t constant = 0, batches = 0;

  [[nodiscard]] bool is_fixed() const { return batches == 0; }
  friend bool operator==(const Number&, const Number&) = default;
};
inline constexpr Number kBatch{0, 1};

[[nodiscard]] std::optional<Number> add(const Number& a, const Number& b);
[[nodiscard]] std::optional<Number> subtract(const Number& a, const Number& b);
[[nodiscard]] std::optional<Number> multiply(const Number& a, const Number& b);
// Towards zero, as in C; of what depends on the batch only where nothing is left over, whatever the batch.
[[nodiscard]] std::optional<Number> divide(const Number& a, const Number& b);
// With the sign of b (of a, as in C, if `like_c`); of fixed numbers.
[[nodiscard]] std::optional<Number> modulo(const Number& a, const Number& b, bool like_c);
// Whether they are equal, or a is below b, for every batch; nothing where that depends on it.
[[nodiscard]] std::optional<bool> equal(const Number& a, const Number& b);
[[nodiscard]] std::optional<bool> below(const Number& a, const Number& b);

}  // namespace tide
