#include "base/shape.h"

#include <algorithm>

namespace tide {

namespace {

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t result = 1;
  for (const std::int64_t extent : extents) result = checked_multiply(result, extent);
  return result;
}

}  // namespace

std::int64_t Shape::elements() const { return product(extents()); }

std::int64_t Shape::per_sample() const { return product(extents().subspan(1)); }

std::int64_t Shape::positions() const { return product(extents().subspan(std::min<std::size_t>(rank(), 2))); }

std::int64_t element_bytes(DataType type) {
  switch (type) {
    case DataType::f32:
    case DataType::i32: return 4;
    case DataType::u8: return 1;
    case DataType::bf16: return 2;
  }
  return 0;
}

Bytes bytes_of(const Shape& shape, DataType type) {
  return Bytes(checked_multiply(shape.elements(), element_bytes(type)));
}

std::string sample_text(const Shape& shape) { return fmt::format("{}", fmt::join(shape.extents().subspan(1), "x")); }

}  // namespace tide
