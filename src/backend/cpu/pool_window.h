// Where the windows of a pool meet its input, along one axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/clones.h"
#include "network/layer.h"

namespace tide::cpu {

struct PoolAxis {
  std::int64_t input, output, kernel, stride, before, after, dilation;

  // Taps [begin, end) of window `o` that lie in the input; tap k is at o * stride - before + k * dilation.
  [[nodiscard]] TIDE_INLINE std::int64_t first_tap(std::int64_t o) const {
    const std::int64_t start = o * stride - before;
    return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  }
  [[nodiscard]] TIDE_INLINE std::int64_t end_tap(std::int64_t o) const {
    const std::int64_t room = input - (o * stride - before);
    const std::int64_t taps = room <= 0 ? 0 : (room + dilation - 1) / dilation;
    return taps < kernel ? taps : kernel;
  }
  [[nodiscard]] TIDE_INLINE std::int64_t position(std::int64_t o, std::int64_t tap) const {
    return o * stride - before + tap * dilation;
  }
  // Taps of window `o` that lie in the padded input.
  [[nodiscard]] TIDE_INLINE std::int64_t padded_taps(std::int64_t o) const {
    const std::int64_t taps = (input + before + after - o * stride + dilation - 1) / dilation;
    return taps < kernel ? taps : kernel;
  }
  // Windows [first, end) that may contain input position `i` (with a dilation, not all of them do).
  [[nodiscard]] TIDE_INLINE std::int64_t first_window(std::int64_t i) const {
    const std::int64_t reach = i + before - (kernel - 1) * dilation;
    return reach <= 0 ? 0 : (reach + stride - 1) / stride;
  }
  [[nodiscard]] TIDE_INLINE std::int64_t end_window(std::int64_t i) const {
    const std::int64_t last = (i + before) / stride + 1;
    return last < output ? last : output;
  }
  // The tap of window `o` that is position `i`, or -1.
  [[nodiscard]] TIDE_INLINE std::int64_t tap_at(std::int64_t o, std::int64_t i) const {
    const std::int64_t distance = i + before - o * stride;
    return distance % dilation == 0 ? distance / dilation : -1;
  }
};

// A pool over NHWC activations.
struct PoolShape {
  std::int64_t batch, channels;
  PoolAxis rows, columns;

  static PoolShape of(const Window& w, const Shape& input, const Shape& output) {
    return {
        input.batch(),
        input.channels(),
        {input.height(), output.height(), w.kernel_height, w.stride_height, w.pad_top, w.pad_bottom, w.dilation_height},
        {input.width(), output.width(), w.kernel_width, w.stride_width, w.pad_left, w.pad_right, w.dilation_width}};
  }
};

}  // namespace tide::cpu
