// The shape of a tensor. Activations are batch x channels x height x width, kept in
// memory as NHWC on every backend; a vector has height and width 1. Weights use the same
// four numbers as output channels x input channels (of one group) x height x width.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace tide {

struct Shape {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;

  // The number of elements; throws where it does not fit in 63 bits.
  [[nodiscard]] std::int64_t elements() const;
  // Elements of one sample.
  [[nodiscard]] std::int64_t per_sample() const;
  [[nodiscard]] Shape with_batch(std::int64_t n) const { return {n, channels, height, width}; }

  friend auto operator<=>(const Shape&, const Shape&) = default;
};

enum class DataType : std::uint8_t { f32, i32, u8, bf16 };

[[nodiscard]] std::int64_t element_bytes(DataType type);
[[nodiscard]] Bytes bytes_of(const Shape& shape, DataType type);
// "64x56x56" (without the batch).
[[nodiscard]] std::string sample_text(const Shape& shape);

}  // namespace tide
