#include "foreign/windows.h"

#include <algorithm>

#include "base/checked.h"

namespace tide {
namespace {

struct AxisWindow {
  std::int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
};

// One number for each axis, or `otherwise` for all.
std::array<std::int64_t, 2> read_pair(const NodeContext& node, const char* name, bool line, std::int64_t otherwise) {
  const std::vector<std::int64_t> list = node.integers(name);
  if (list.empty()) return {otherwise, otherwise};
  if (list.size() != (line ? 1U : 2U))
    node.refuse("its '{}' are {} numbers; it takes one for each axis", name, list.size());
  if (line) return {otherwise, list[0]};
  return {list[0], list[1]};
}

// So that there is an output for each stride of the input.
void pad_to_same(AxisWindow& axis, std::int64_t in, bool more_before, bool transposed) {
  const std::int64_t effective = checked_add(checked_multiply(axis.kernel - 1, axis.dilation), 1);
  std::int64_t total = effective - axis.stride;
  if (!transposed) {
    const std::int64_t out = (in + axis.stride - 1) / axis.stride;
    total = checked_add(checked_multiply(out - 1, axis.stride), effective) - in;
  }
  total = std::max<std::int64_t>(0, total);
  axis.before = total / 2;
  axis.after = total - axis.before;
  if (more_before) std::swap(axis.before, axis.after);
}

}  // namespace

Window read_window(const NodeContext& node, const std::array<std::int64_t, 2>& kernel, const Shape& input, bool line,
                   bool transposed) {
  const auto given_kernel = read_pair(node, "kernel_shape", line, 0);
  if (node.has("kernel_shape") && given_kernel[1] != kernel[1])
    node.refuse("its kernel is {} but its weight is for {}", given_kernel[1], kernel[1]);
  const auto strides = read_pair(node, "strides", line, 1), dilations = read_pair(node, "dilations", line, 1);
  const auto extra = read_pair(node, "output_padding", line, 0);
  if (node.has("output_shape")) node.refuse("it has an 'output_shape'; export it with pads instead");
  const std::vector<std::int64_t> pads = node.integers("pads");
  const std::size_t axes = line ? 1 : 2;
  if (!pads.empty() && pads.size() != 2 * axes)
    node.refuse("its 'pads' are {} numbers; it takes {}", pads.size(), 2 * axes);
  const std::string automatic = node.text("auto_pad", "NOTSET");
  std::array<AxisWindow, 2> windows;
  for (std::size_t i = 0; i < 2; ++i) {
    AxisWindow& window = windows[i];
    window.kernel = kernel[i];
    window.stride = strides[i];
    window.dilation = dilations[i];
    if (window.kernel < 1 || window.stride < 1 || window.dilation < 1)
      node.refuse("its kernel is {}, its stride {} and its dilation {}; each must be at least 1", window.kernel,
                  window.stride, window.dilation);
    const bool written = !line || i == 1;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      if (written) pad_to_same(window, i == 0 ? input.height() : input.width(), automatic == "SAME_LOWER", transposed);
    } else if (automatic == "NOTSET" || automatic.empty()) {
      if (written && !pads.empty()) {
        window.before = pads[line ? 0 : i];
        window.after = pads[line ? 1 : i + 2];
      }
    } else if (automatic != "VALID") {
      node.refuse("its 'auto_pad' is '{}', which is no way to pad", automatic);
    }
    if (transposed) {
      window.after -= extra[i];
      if (window.after < 0)
        node.refuse("its output padding of {} is more than its padding, for which there is no layer", extra[i]);
    }
  }
  const auto &rows = windows[0], &columns = windows[1];
  return {.kernel_height = rows.kernel,
          .kernel_width = columns.kernel,
          .stride_height = rows.stride,
          .stride_width = columns.stride,
          .pad_top = rows.before,
          .pad_left = columns.before,
          .pad_bottom = rows.after,
          .pad_right = columns.after,
          .dilation_height = rows.dilation,
          .dilation_width = columns.dilation};
}

}  // namespace tide
