#include "base/shape.h"

namespace tide {

std::int64_t Shape::elements() const { return checked_multiply(batch, per_sample()); }

std::int64_t Shape::per_sample() const { return checked_multiply(checked_multiply(channels, height), width); }

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

std::string sample_text(const Shape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

}  // namespace tide
