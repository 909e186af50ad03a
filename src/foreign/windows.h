// Sliding windows as ONNX writes them down.
#pragma once

#include <array>

#include "foreign/lowering.h"

namespace tide {

// Strides, dilations and padding of a window of this size (height, width) over `input`. `line`: they are written for
// one axis, and the height is 1. `transposed`: of a transposed convolution, whose output padding is taken off its
// padding.
[[nodiscard]] Window read_window(const NodeContext& node, const std::array<std::int64_t, 2>& kernel, const Shape& input,
                                 bool line, bool transposed = false);

}  // namespace tide
