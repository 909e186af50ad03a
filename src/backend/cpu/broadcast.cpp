// Two values of shapes that are spread to one, and parameters that are spread over a value. Threads share the samples:
// what a gradient sums up lies within one, but for parameters, whose sums of parts are added in order.
#include "backend/broadcast.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/clones.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

// A line of neighbouring channels: where it begins in each value, and how far the values go on.
struct Line {
  Index whole = 0, first = 0, second = 0;
};

// visit(line) for all lines of samples [begin, end).
template <typename Visit>
void for_each_line(const Broadcast& b, Index begin, Index end, const Visit& visit) {
  const int last = b.rank - 1;
  const auto inner = b.extent[static_cast<std::size_t>(last)];
  Index lines = 1, per_sample = inner;
  for (int axis = 1; axis < last; ++axis) lines *= b.extent[static_cast<std::size_t>(axis)];
  per_sample *= lines;
  for (Index n = begin; n < end; ++n) {
    std::array<Index, Broadcast::kMostAxes> at{};
    Line line{n * per_sample, n * b.stride[0][0], n * b.stride[1][0]};
    for (Index k = 0; k < lines; ++k) {
      visit(line);
      line.whole += inner;
      for (int axis = last - 1; axis >= 1; --axis) {
        const auto a = static_cast<std::size_t>(axis);
        line.first += b.stride[0][a], line.second += b.stride[1][a];
        if (++at[a] < b.extent[a]) break;
        line.first -= b.stride[0][a] * at[a], line.second -= b.stride[1][a] * at[a];
        at[a] = 0;
      }
    }
  }
}

// A vector of samples has no axis between; then the line is the sample.
Broadcast at_least_two_axes(Broadcast b) {
  if (b.rank >= 2) return b;
  throw Error("a value has a batch and at least one extent behind it");
}

template <typename Function>
TIDE_INLINE void combine_line(const float* a, Index a_step, const float* b, Index b_step, float* y, Index count,
                              const Function& function) {
  if (a_step == 1 && b_step == 1) {
#pragma omp simd
    for (Index i = 0; i < count; ++i) y[i] = function(a[i], b[i]);
  } else if (a_step == 1 && b_step == 0) {
    const float other = *b;
#pragma omp simd
    for (Index i = 0; i < count; ++i) y[i] = function(a[i], other);
  } else if (a_step == 0 && b_step == 1) {
    const float other = *a;
#pragma omp simd
    for (Index i = 0; i < count; ++i) y[i] = function(other, b[i]);
  } else {  // parameters lie row by row, so that channels are apart
    for (Index i = 0; i < count; ++i) y[i] = function(a[i * a_step], b[i * b_step]);
  }
}

TIDE_CLONES void combined_line(CombineFunction function, const float* a, Index a_step, const float* b, Index b_step,
                               float* y, Index count) {
  switch (function) {
    case CombineFunction::add:
      return combine_line(a, a_step, b, b_step, y, count, [](float p, float q) { return p + q; });
    case CombineFunction::subtract:
      return combine_line(a, a_step, b, b_step, y, count, [](float p, float q) { return p - q; });
    case CombineFunction::multiply:
      return combine_line(a, a_step, b, b_step, y, count, [](float p, float q) { return p * q; });
    case CombineFunction::divide:
      return combine_line(a, a_step, b, b_step, y, count, [](float p, float q) { return p / q; });
  }
}

// What the slope of input `which` is at one element.
TIDE_INLINE double slope(CombineFunction function, std::size_t which, double a, double b) {
  switch (function) {
    case CombineFunction::add: return 1;
    case CombineFunction::subtract: return which == 0 ? 1 : -1;
    case CombineFunction::multiply: return which == 0 ? b : a;
    case CombineFunction::divide: return which == 0 ? 1 / b : -a / (b * b);
  }
  return 1;
}

Recipe combine_forward(const TaskView& view, const Broadcast& b, int threads) {
  const CombineFunction function = view.options<CombineOptions>().function;
  const std::size_t first = view.read(Role::x, 0), second = view.read(Role::x, 1), y = view.written(Role::y);
  const auto last = static_cast<std::size_t>(b.rank - 1);
  return recipe([=](const Launch& launch) {
    parallel_parts(threads, b.extent[0], [&](Index n) {
      for_each_line(b, n, n + 1, [&](const Line& line) {
        combined_line(function, input_of<float>(launch, first) + line.first, b.stride[0][last],
                      input_of<float>(launch, second) + line.second, b.stride[1][last],
                      output_of<float>(launch, y) + line.whole, b.extent[last]);
      });
    });
  });
}

Recipe combine_backward(const TaskView& view, const Broadcast& b, int threads) {
  const CombineFunction function = view.options<CombineOptions>().function;
  const bool reads = view.find_read(Role::x).has_value();
  const std::size_t first = reads ? view.read(Role::x, 0) : 0, second = reads ? view.read(Role::x, 1) : 0;
  const std::size_t dy = view.read(Role::dy);
  const auto last = static_cast<std::size_t>(b.rank - 1);
  struct Target {
    std::size_t position, which;
    Index per_sample;
  };
  std::vector<Target> targets;
  Index room = 0;
  for (const std::size_t position : view.all_written(Role::dx)) {
    const auto which = static_cast<std::size_t>(view.operand(position).index);
    targets.push_back({position, which, view.input(which).per_sample()});
    room = std::max(room, targets.back().per_sample);
  }
  const Index workers = std::min<Index>(threads, b.extent[0]);
  const auto kernel = [=](const Launch& launch) {
    const auto* const gradient = input_of<float>(launch, dy);
    const float* const a = reads ? input_of<float>(launch, first) : nullptr;
    const float* const other = reads ? input_of<float>(launch, second) : nullptr;
    parallel_parts(threads, workers, [&](Index worker) {
      auto* const sums = reinterpret_cast<double*>(launch.workspace) + worker * room;
      const Range samples = part_of(b.extent[0], worker, workers);
      for (Index n = samples.begin; n < samples.end; ++n)
        for (const Target& target : targets) {
          std::fill_n(sums, target.per_sample, 0.0);
          const Index start = n * target.per_sample;
          for_each_line(b, n, n + 1, [&](const Line& line) {
            double* const to = sums + (target.which == 0 ? line.first : line.second) - start;
            const Index step = b.stride[target.which][last];
            for (Index i = 0; i < b.extent[last]; ++i) {
              const auto dy_i = static_cast<double>(gradient[line.whole + i]);
              const double at = reads ? static_cast<double>(a[line.first + i * b.stride[0][last]]) : 0;
              const double by = reads ? static_cast<double>(other[line.second + i * b.stride[1][last]]) : 0;
              to[i * step] += dy_i * slope(function, target.which, at, by);
            }
          });
          auto* const result = output_of<float>(launch, target.position) + start;
          for (Index i = 0; i < target.per_sample; ++i) result[i] = static_cast<float>(sums[i]);
        }
    });
  };
  return recipe(kernel, Bytes(workers * room * 8));
}

Recipe scale_forward(const TaskView& view, const Broadcast& b, int threads) {
  const std::size_t x = view.read(Role::x), y = view.written(Role::y);
  const auto weight = view.find_read(Role::weight), bias = view.find_read(Role::bias);
  const auto last = static_cast<std::size_t>(b.rank - 1);
  return recipe([=](const Launch& launch) {
    const float* const weights = weight ? input_of<float>(launch, *weight) : nullptr;
    const float* const shifts = bias ? input_of<float>(launch, *bias) : nullptr;
    parallel_parts(threads, b.extent[0], [&](Index n) {
      for_each_line(b, n, n + 1, [&](const Line& line) {
        const float* from = input_of<float>(launch, x) + line.first;
        float* const to = output_of<float>(launch, y) + line.whole;
        const Index step = b.stride[1][last], count = b.extent[last];
        if (weights != nullptr)
          combined_line(CombineFunction::multiply, from, 1, weights + line.second, step, to, count), from = to;
        if (shifts != nullptr) combined_line(CombineFunction::add, from, 1, shifts + line.second, step, to, count);
      });
    });
  });
}

Recipe scale_backward(const TaskView& view, const Broadcast& b, int threads) {
  const std::size_t x = view.read(Role::x), dy = view.read(Role::dy);
  const auto weight = view.find_read(Role::weight), dx = view.find_written(Role::dx);
  const auto d_weight = view.find_written(Role::d_weight), d_bias = view.find_written(Role::d_bias);
  const bool add_weight = d_weight && view.accumulates(*d_weight), add_bias = d_bias && view.accumulates(*d_bias);
  const auto last = static_cast<std::size_t>(b.rank - 1);
  Index size = 1;
  for (std::size_t axis = 0; axis <= last; ++axis)
    if (b.stride[1][axis] != 0) size *= b.extent[axis];
  const Index workers = std::min<Index>(threads, b.extent[0]);
  const auto kernel = [=](const Launch& launch) {
    const auto *values = input_of<float>(launch, x), *gradient = input_of<float>(launch, dy);
    const float* const weights = weight ? input_of<float>(launch, *weight) : nullptr;
    auto* const all = reinterpret_cast<double*>(launch.workspace);
    parallel_parts(threads, workers, [&](Index worker) {
      double *const products = all + worker * 2 * size, *const sums = products + size;
      std::fill_n(products, 2 * size, 0.0);
      const Range samples = part_of(b.extent[0], worker, workers);
      for_each_line(b, samples.begin, samples.end, [&](const Line& line) {
        const Index step = b.stride[1][last], count = b.extent[last];
        for (Index i = 0; i < count; ++i) {
          const auto arriving = static_cast<double>(gradient[line.whole + i]);
          products[line.second + i * step] += arriving * static_cast<double>(values[line.first + i]);
          sums[line.second + i * step] += arriving;
        }
        if (!dx) return;
        float* const to = output_of<float>(launch, *dx) + line.first;
        if (weights == nullptr)
          std::memmove(to, gradient + line.whole, static_cast<std::size_t>(count) * sizeof(float));
        else
          combined_line(CombineFunction::multiply, gradient + line.whole, 1, weights + line.second, step, to, count);
      });
    });
    const auto write = [&](std::size_t position, bool adds, Index offset) {
      auto* const to = output_of<float>(launch, position);
      for (Index i = 0; i < size; ++i) {
        double sum = 0;
        for (Index worker = 0; worker < workers; ++worker) sum += all[worker * 2 * size + offset + i];
        to[i] = static_cast<float>(sum) + (adds ? to[i] : 0.0F);
      }
    };
    if (d_weight) write(*d_weight, add_weight, 0);
    if (d_bias) write(*d_bias, add_bias, size);
  };
  return recipe(kernel, Bytes(workers * 2 * size * 8));
}

}  // namespace

Recipe combine_recipe(const TaskView& view, const ContextPtr& context) {
  const Broadcast b = at_least_two_axes(combined_values(view));
  const int threads = team_for(b.elements(), threads_of(context));
  return view.is_forward() ? combine_forward(view, b, threads) : combine_backward(view, b, threads);
}

Recipe scale_recipe(const TaskView& view, const ContextPtr& context) {
  const Broadcast b = at_least_two_axes(scaled_values(view, false));
  const int threads = team_for(b.elements(), threads_of(context));
  return view.is_forward() ? scale_forward(view, b, threads) : scale_backward(view, b, threads);
}

}  // namespace tide::cpu
