#include "foreign/number.h"

#include <limits>

namespace tide {

std::optional<Number> add(const Number& a, const Number& b) {
  Number sum;
  if (__builtin_add_overflow(a.constant, b.constant, &sum.constant) ||
      __builtin_add_overflow(a.batches, b.batches, &sum.batches))
    return std::nullopt;
  return sum;
}

std::optional<Number> subtract(const Number& a, const Number& b) {
  Number difference;
  if (__builtin_sub_overflow(a.constant, b.constant, &difference.constant) ||
      __builtin_sub_overflow(a.batches, b.batches, &difference.batches))
    return std::nullopt;
  return difference;
}

std::optional<Number> multiply(const Number& a, const Number& b) {
  if (!a.is_fixed() && !b.is_fixed()) return std::nullopt;
  const Number &factor = a.is_fixed() ? a : b, &other = a.is_fixed() ? b : a;
  Number product;
  if (__builtin_mul_overflow(other.constant, factor.constant, &product.constant) ||
      __builtin_mul_overflow(other.batches, factor.constant, &product.batches))
    return std::nullopt;
  return product;
}

std::optional<Number> divide(const Number& a, const Number& b) {
  if (a == b && !b.is_fixed() && b.constant >= 0 && b.batches > 0) return Number{1};
  if (!b.is_fixed() || b.constant == 0) return std::nullopt;
  if (b.constant == -1) return subtract({}, a);
  if (a.is_fixed()) return Number{a.constant / b.constant};
  if (a.constant % b.constant != 0 || a.batches % b.constant != 0) return std::nullopt;
  return Number{a.constant / b.constant, a.batches / b.constant};
}

std::optional<Number> modulo(const Number& a, const Number& b, bool like_c) {
  if (!b.is_fixed() || b.constant == 0) return std::nullopt;
  if (b.constant == 1 || b.constant == -1) return Number{};
  if (!a.is_fixed()) {
    if (a.constant % b.constant == 0 && a.batches % b.constant == 0) return Number{};
    return std::nullopt;
  }
  const std::int64_t rest = a.constant % b.constant;
  if (!like_c && rest != 0 && (rest < 0) != (b.constant < 0)) return Number{rest + b.constant};
  return Number{rest};
}

std::optional<bool> equal(const Number& a, const Number& b) {
  const std::optional<Number> difference = subtract(a, b);
  if (!difference) return std::nullopt;
  if (difference->is_fixed()) return difference->constant == 0;
  // Zero for one batch at most: constant + batches * B == 0.
  if (difference->constant == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  if (difference->constant % difference->batches != 0) return false;
  if (-difference->constant / difference->batches < 1) return false;
  return std::nullopt;
}

std::optional<bool> below(const Number& a, const Number& b) {
  const std::optional<Number> difference = subtract(a, b);
  if (!difference) return std::nullopt;
  if (difference->is_fixed()) return difference->constant < 0;
  const std::optional<Number> smallest = add({difference->constant}, {difference->batches});  // of batch 1
  if (!smallest) return std::nullopt;
  if (difference->batches > 0 && smallest->constant >= 0) return false;
  if (difference->batches < 0 && smallest->constant < 0) return true;
  return std::nullopt;
}

}  // namespace tide
