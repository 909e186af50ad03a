#include "backend/logical_order.h"

#include <cstdint>

#include "base/bfloat16.h"

namespace tide {
namespace {

void require_size(const Shape& shape, std::size_t size) {
  if (static_cast<std::size_t>(shape.elements()) != size)
    throw Error("a tensor of {} elements was given {} values", shape.elements(), size);
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

void write_logical(const Shape& shape, const MemoryOrder& order, DataType type, std::span<const float> logical,
                   std::byte* memory) {
  require_size(shape, logical.size());
  for_each_element(shape, order, [&](std::size_t from, std::size_t to) { store(type, memory, to, logical[from]); });
}

void read_logical(const Shape& shape, const MemoryOrder& order, DataType type, const std::byte* memory,
                  std::span<float> logical) {
  require_size(shape, logical.size());
  for_each_element(shape, order, [&](std::size_t to, std::size_t from) { logical[to] = load(type, memory, from); });
}

void write_plain(DataType type, std::span<const float> logical, std::byte* memory) {
  for (std::size_t i = 0; i < logical.size(); ++i) store(type, memory, i, logical[i]);
}

void read_plain(DataType type, const std::byte* memory, std::span<float> logical) {
  for (std::size_t i = 0; i < logical.size(); ++i) logical[i] = load(type, memory, i);
}

}  // namespace tide
