#include <algorithm>
#include <cmath>

#include "backend/reference/task.h"

namespace tide::reference {
namespace {

// What is no image has its positions in one column.
Shape image_of(const Shape& shape) {
  return shape.rank() == 4 ? shape : Shape{shape.batch(), shape.channels(), shape.positions(), 1};
}

// The positions of one window that lie in the input: visit(position in the window, h, w).
template <typename Visit>
void for_each_position(const Window& window, const Shape& input, std::int64_t oh, std::int64_t ow, Visit visit) {
  for (std::int64_t kh = 0; kh < window.kernel_height; ++kh)
    for (std::int64_t kw = 0; kw < window.kernel_width; ++kw) {
      const std::int64_t h = oh * window.stride_height - window.pad_top + kh * window.dilation_height;
      const std::int64_t w = ow * window.stride_width - window.pad_left + kw * window.dilation_width;
      if (h >= 0 && h < input.height() && w >= 0 && w < input.width()) visit(kh * window.kernel_width + kw, h, w);
    }
}

// How many positions the average divides by: those in the input, or with count_padding
// those in the padded input (a rounded-up window may reach beyond it).
double divisor(const PoolOptions& options, const Shape& input, std::int64_t oh, std::int64_t ow) {
  const Window& window = options.window;
  Shape counted = input;
  Window shifted = window;
  if (options.count_padding) {
    counted = counted.with_extent(2, counted.height() + window.pad_top + window.pad_bottom)
                  .with_extent(3, counted.width() + window.pad_left + window.pad_right);
    shifted.pad_top = shifted.pad_left = 0;
  }
  double count = 0;
  for_each_position(shifted, counted, oh, ow, [&](auto, auto, auto) { ++count; });
  return count;
}

// The position of the first maximum; a NaN wins, so that it is seen.
std::int64_t first_maximum(const Window& window, const Grid& input, const Values& x, std::int64_t n, std::int64_t c,
                           std::int64_t oh, std::int64_t ow) {
  std::int64_t best = -1;
  double maximum = 0;
  for_each_position(window, input.shape, oh, ow, [&](std::int64_t position, std::int64_t h, std::int64_t w) {
    const double value = x[input.at(n, c, h, w)];
    if (best >= 0 && !(value > maximum) && !std::isnan(value)) return;
    best = position;
    maximum = value;
  });
  return best;
}

template <typename Visit>
void for_each_output(const Shape& output, Visit visit) {
  for (std::int64_t n = 0; n < output.batch(); ++n)
    for (std::int64_t h = 0; h < output.height(); ++h)
      for (std::int64_t w = 0; w < output.width(); ++w)
        for (std::int64_t c = 0; c < output.channels(); ++c) visit(n, c, h, w);
}

void average(const ReferenceTask& task, const PoolOptions& options) {
  const Grid input{image_of(task.view.input())}, output{image_of(task.view.output())};
  const bool forward = task.view.is_forward();
  const Values& from = forward ? task.in(Role::x) : task.in(Role::dy);
  Values& to = forward ? task.out(Role::y) : task.out(Role::dx);
  for_each_output(output.shape, [&](auto n, auto c, auto oh, auto ow) {
    const double count = divisor(options, input.shape, oh, ow);
    for_each_position(options.window, input.shape, oh, ow, [&](auto, auto h, auto w) {
      const std::size_t small = output.at(n, c, oh, ow), large = input.at(n, c, h, w);
      if (forward)
        to[small] += from[large] / count;
      else
        to[large] += from[small] / count;
    });
  });
}

}  // namespace

void run_max_pool(const ReferenceTask& task) {
  const Window window = task.view.options<PoolOptions>().window;
  const Grid input{task.view.input()}, output{task.view.output()};
  const auto source = [&](std::int64_t position, std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t ow) {
    const std::int64_t kh = position / window.kernel_width, kw = position % window.kernel_width;
    return input.at(n, c, oh * window.stride_height - window.pad_top + kh * window.dilation_height,
                    ow * window.stride_width - window.pad_left + kw * window.dilation_width);
  };
  if (task.view.is_forward()) {
    const Values& x = task.in(Role::x);
    Values& y = task.out(Role::y);
    Values* indices = task.writes(Role::indices) ? &task.out(Role::indices) : nullptr;
    for_each_output(output.shape, [&](auto n, auto c, auto h, auto w) {
      const std::int64_t position = first_maximum(window, input, x, n, c, h, w);
      y[output.at(n, c, h, w)] = x[source(position, n, c, h, w)];
      if (indices != nullptr) (*indices)[output.at(n, c, h, w)] = static_cast<double>(position);
    });
    return;
  }
  const Values& dy = task.in(Role::dy);
  const bool from_indices = task.view.find_read(Role::indices).has_value();
  const Values& saved = task.in(from_indices ? Role::indices : Role::x);
  Values& dx = task.out(Role::dx);
  for_each_output(output.shape, [&](auto n, auto c, auto h, auto w) {
    const std::size_t at = output.at(n, c, h, w);
    const std::int64_t position =
        from_indices ? static_cast<std::int64_t>(saved[at]) : first_maximum(window, input, saved, n, c, h, w);
    dx[source(position, n, c, h, w)] += dy[at];
  });
}

void run_average_pool(const ReferenceTask& task) { average(task, task.view.options<PoolOptions>()); }

// One window over everything.
void run_global_average_pool(const ReferenceTask& task) {
  PoolOptions options;
  options.window.kernel_height = image_of(task.view.input()).height();
  options.window.kernel_width = image_of(task.view.input()).width();
  average(task, options);
}

}  // namespace tide::reference
