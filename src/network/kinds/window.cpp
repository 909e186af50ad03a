#include "network/kinds/window.h"

namespace tide {

Window Window::square(std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return {.kernel_height = kernel,
          .kernel_width = kernel,
          .stride_height = stride,
          .stride_width = stride,
          .pad_top = pad,
          .pad_left = pad,
          .pad_bottom = pad,
          .pad_right = pad};
}

Window Window::rectangle(std::int64_t kernel_height, std::int64_t kernel_width, std::int64_t pad_height,
                         std::int64_t pad_width) {
  return {.kernel_height = kernel_height,
          .kernel_width = kernel_width,
          .pad_top = pad_height,
          .pad_left = pad_width,
          .pad_bottom = pad_height,
          .pad_right = pad_width};
}

WindowSpan vertical(const Window& w) {
  return {"height", w.kernel_height, w.stride_height, w.pad_top, w.pad_bottom, w.dilation_height};
}

WindowSpan horizontal(const Window& w) {
  return {"width", w.kernel_width, w.stride_width, w.pad_left, w.pad_right, w.dilation_width};
}

void check_image(const Shape& x) {
  require(x.rank() == 4 || x.rank() == 2, "its input is {}; it takes channels x height x width", sample_text(x));
}

void check_span(const WindowSpan& span) {
  require(span.kernel >= 1, "kernel {} is {}; it must be at least 1", span.axis, span.kernel);
  require(span.stride >= 1, "stride {} is {}; it must be at least 1", span.axis, span.stride);
  require(span.dilation >= 1, "dilation {} is {}; it must be at least 1", span.axis, span.dilation);
  require(span.before >= 0 && span.after >= 0, "padding of the {} is {} and {}; it must not be negative", span.axis,
          span.before, span.after);
}

std::int64_t window_count(const WindowSpan& span, std::int64_t in, bool round_up) {
  const std::int64_t padded = checked_add(checked_add(in, span.before), span.after);
  const std::int64_t effective = span.effective();
  require(padded >= effective,
          "a window of {} {} does not fit into the padded input's {}; make the window smaller or the input larger",
          span.axis, effective, padded);
  const std::int64_t room = padded - effective;
  std::int64_t out = room / span.stride + 1;
  // A rounded-up window must start inside the input or the padding before it, or it would be empty.
  if (round_up && room % span.stride != 0 && checked_multiply(out, span.stride) < checked_add(in, span.before)) ++out;
  return out;
}

}  // namespace tide
