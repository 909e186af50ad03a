#include "backend/logical_order.h"

#include <cstdint>

#include "base/bfloat16.h"

namespace tide {
namespace {

// Calls copy(logical index, memory index) for every element.
template <typename Copy>
void for_each_nhwc(const Shape& shape, std::size_t size, Copy copy) {
  if (static_cast<std::size_t>(shape.elements()) != size)
    throw Error("a tensor of {} elements was given {} values", shape.elements(), size);
  std::size_t memory = 0;
  for (std::int64_t n = 0; n < shape.batch(); ++n)
    for (std::int64_t h = 0; h < shape.height(); ++h)
      for (std::int64_t w = 0; w < shape.width(); ++w)
        for (std::int64_t c = 0; c < shape.channels(); ++c)
          copy(static_cast<std::size_t>(((n * shape.channels() + c) * shape.height() + h) * shape.width() + w),
               memory++);
}

void store(DataType type, std::byte* memory, std::size_t index, float value) {
  switch (type) {
    case DataType::f32: reinterpret_cast<float*>(memory)[index] = value; break;
    case DataType::i32: reinterpret_cast<std::int32_t*>(memory)[index] = static_cast<std::int32_t>(value); break;
    case DataType::u8: reinterpret_cast<std::uint8_t*>(memory)[index] = static_cast<std::uint8_t>(value); break;
    case DataType::bf16: reinterpret_cast<BFloat16*>(memory)[index] = BFloat16(value); break;
  }
}

float load(DataType type, const std::byte* memory, std::size_t index) {
  switch (type) {
    case DataType::f32: return reinterpret_cast<const float*>(memory)[index];
    case DataType::i32: return static_cast<float>(reinterpret_cast<const std::int32_t*>(memory)[index]);
    case DataType::u8: return static_cast<float>(reinterpret_cast<const std::uint8_t*>(memory)[index]);
    case DataType::bf16: return static_cast<float>(reinterpret_cast<const BFloat16*>(memory)[index]);
  }
  return 0;
}

}  // namespace

void write_nhwc(const Shape& shape, DataType type, std::span<const float> logical, std::byte* memory) {
  for_each_nhwc(shape, logical.size(),
                [&](std::size_t from, std::size_t to) { store(type, memory, to, logical[from]); });
}

void read_nhwc(const Shape& shape, DataType type, const std::byte* memory, std::span<float> logical) {
  for_each_nhwc(shape, logical.size(),
                [&](std::size_t to, std::size_t from) { logical[to] = load(type, memory, from); });
}

void write_plain(DataType type, std::span<const float> logical, std::byte* memory) {
  for (std::size_t i = 0; i < logical.size(); ++i) store(type, memory, i, logical[i]);
}

void read_plain(DataType type, const std::byte* memory, std::span<float> logical) {
  for (std::size_t i = 0; i < logical.size(); ++i) logical[i] = load(type, memory, i);
}

}  // namespace tide
