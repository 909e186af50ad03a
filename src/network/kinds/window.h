// Sizes of what a sliding window makes, for the kinds that have one.
#pragma once

#include "network/kind.h"

namespace tide {

// One direction of a window.
struct WindowSpan {
  const char* axis;
  std::int64_t kernel, stride, before, after, dilation;

  // Of the input, from the first to the last element under the window.
  [[nodiscard]] std::int64_t effective() const { return checked_add(checked_multiply(dilation, kernel - 1), 1); }
};

[[nodiscard]] WindowSpan vertical(const Window& window);
[[nodiscard]] WindowSpan horizontal(const Window& window);
void check_span(const WindowSpan& span);
// A vector is an image of one pixel.
void check_image(const Shape& x);
// How many windows there are over `in` elements.
[[nodiscard]] std::int64_t window_count(const WindowSpan& span, std::int64_t in, bool round_up);

}  // namespace tide
