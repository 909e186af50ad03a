// Softmax and L2 normalization along one axis.
#include <algorithm>
#include <cmath>

#include "backend/cpu/exponential.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"
#include "base/memory_order.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

// Lines along the axis: `count` neighbours at `step`; line (outer, inner) begins at outer * count * step + inner.
struct Lines {
  Lines(const TaskView& view, std::int64_t axis) {
    const Shape shape = view.input();
    const auto along = static_cast<std::size_t>(axis);
    count = shape.extent(along);
    step = strides_of(shape, MemoryOrder::channels_last(shape.rank()))[along];
    lines = shape.elements() / count;
  }
  [[nodiscard]] Index begin(Index line) const { return line / step * count * step + line % step; }
  Index count, step, lines;
};

template <typename Work>
void for_lines(const Lines& lines, int threads, const Work& work) {
  parallel_ranges(threads, lines.lines, kElementGrain / lines.count + 1, [&](Index begin, Index end) {
    for (Index line = begin; line < end; ++line) work(lines.begin(line));
  });
}

}  // namespace

Recipe softmax_recipe(const TaskView& view, const ContextPtr& context) {
  const Lines l(view, view.options<SoftmaxAxisOptions>().axis);
  const int threads = team_for(view.input().elements(), threads_of(context));
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y);
    return recipe([=](const Launch& launch) {
      for_lines(l, threads, [&](Index at) {
        const float* const from = input_of<float>(launch, x) + at;
        float* const to = output_of<float>(launch, y) + at;
        float largest = from[0];
        double sum = 0;
        for (Index i = 1; i < l.count; ++i) largest = std::max(largest, from[i * l.step]);
        for (Index i = 0; i < l.count; ++i) {
          to[i * l.step] = exponential(from[i * l.step] - largest);
          sum += static_cast<double>(to[i * l.step]);
        }
        const auto factor = static_cast<float>(1 / sum);
        for (Index i = 0; i < l.count; ++i) to[i * l.step] *= factor;
      });
    });
  }
  const std::size_t y = view.read(Role::y), dy = view.read(Role::dy), dx = view.written(Role::dx);
  return recipe([=](const Launch& launch) {
    for_lines(l, threads, [&](Index at) {
      const float *const answer = input_of<float>(launch, y) + at, *const gradient = input_of<float>(launch, dy) + at;
      float* const to = output_of<float>(launch, dx) + at;
      double product = 0;
      for (Index i = 0; i < l.count; ++i)
        product += static_cast<double>(answer[i * l.step]) * static_cast<double>(gradient[i * l.step]);
      for (Index i = 0; i < l.count; ++i)
        to[i * l.step] = answer[i * l.step] * (gradient[i * l.step] - static_cast<float>(product));
    });
  });
}

Recipe l2_normalize_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<L2NormalizeOptions>();
  const Lines l(view, options.axis);
  const double epsilon = options.epsilon;
  const int threads = team_for(view.input().elements(), threads_of(context));
  const bool forward = view.is_forward();
  const std::size_t x = view.read(Role::x), dy = forward ? x : view.read(Role::dy);
  const std::size_t to = forward ? view.written(Role::y) : view.written(Role::dx);
  return recipe([=](const Launch& launch) {
    for_lines(l, threads, [&](Index at) {
      const float *const from = input_of<float>(launch, x) + at, *const gradient = input_of<float>(launch, dy) + at;
      float* const made = output_of<float>(launch, to) + at;
      double squares = 0, product = 0;
      for (Index i = 0; i < l.count; ++i) {
        const auto value = static_cast<double>(from[i * l.step]);
        squares += value * value;
        product += value * static_cast<double>(gradient[i * l.step]);
      }
      const double norm = std::sqrt(squares), inverse = 1 / std::max(norm, epsilon);
      const double back = norm > epsilon ? product * inverse * inverse * inverse : 0;
      for (Index i = 0; i < l.count; ++i) {
        const auto value = static_cast<double>(from[i * l.step]);
        made[i * l.step] = static_cast<float>(
            forward ? value * inverse : static_cast<double>(gradient[i * l.step]) * inverse - value * back);
      }
    });
  });
}

}  // namespace tide::cpu
