// Copies between the logical order of a tensor (NCHW floats, what users, hashes and
// checkpoints see) and NHWC memory of its own type.
#pragma once

#include <cstddef>
#include <span>

#include "base/shape.h"

namespace tide {

// REQUIRES: logical.size() == shape.elements(); memory holds bytes_of(shape, type).
void write_nhwc(const Shape& shape, DataType type, std::span<const float> logical, std::byte* memory);
void read_nhwc(const Shape& shape, DataType type, const std::byte* memory, std::span<float> logical);

// The same for tensors whose memory is in logical order.
void write_plain(DataType type, std::span<const float> logical, std::byte* memory);
void read_plain(DataType type, const std::byte* memory, std::span<float> logical);

}  // namespace tide
