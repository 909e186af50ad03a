#include "base/shape.h"

#include <algorithm>
#include <array>

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

std::string_view type_name(DataType type) {
  constexpr std::array<std::string_view, kDataTypes> kNames{"f32", "i32", "u8", "bf16"};
  return kNames[static_cast<std::size_t>(type)];
}

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
