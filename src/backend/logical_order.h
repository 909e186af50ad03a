// Copies between the logical order of a tensor (row-major floats, what users, hashes and
// checkpoints see) and memory of its own type and order.
#pragma once

#include <cstddef>
#include <span>

#include "base/memory_order.h"

namespace tide {

// REQUIRES: logical.size() == shape.elements(); memory holds bytes_of(shape, type).
void write_logical(const Shape& shape, const MemoryOrder& order, DataType type, std::span<const float> logical,
                   std::byte* memory);
void read_logical(const Shape& shape, const MemoryOrder& order, DataType type, const std::byte* memory,
                  std::span<float> logical);

// The same for tensors whose memory is in logical order.
void write_plain(DataType type, std::span<const float> logical, std::byte* memory);
void read_plain(DataType type, const std::byte* memory, std::span<float> logical);

}  // namespace tide
