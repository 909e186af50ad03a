// Activations, sums, copies and products. Every loop is free of dependencies between
// iterations even where a result takes the place of an operand, and says so: without it the
// compiler would fall back to scalar code for equal addresses.
#include "backend/cpu/pointwise.h"

#include <array>
#include <cstring>

#include "backend/cpu/clones.h"
#include "backend/cpu/exponential.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"
#include "backend/cpu/streaming.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

// A NaN passes, so that it is seen.
TIDE_CLONES void relu_forward(const float* x, float* y, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) y[i] = x[i] <= 0.0F ? 0.0F : x[i];
}

TIDE_CLONES void relu_backward(const float* y, const float* dy, float* dx, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) dx[i] = y[i] > 0.0F ? dy[i] : 0.0F;
}

TIDE_CLONES void sigmoid_forward(const float* x, float* y, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) y[i] = sigmoid(x[i]);
}

TIDE_CLONES void sigmoid_backward(const float* y, const float* dy, float* dx, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) dx[i] = dy[i] * y[i] * (1.0F - y[i]);
}

TIDE_CLONES void tanh_forward(const float* x, float* y, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) y[i] = hyperbolic_tangent(x[i]);
}

TIDE_CLONES void tanh_backward(const float* y, const float* dy, float* dx, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) dx[i] = dy[i] * (1.0F - y[i] * y[i]);
}

TIDE_CLONES void add(const float* a, const float* b, float* y, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

TIDE_CLONES void multiply(const float* a, const float* b, float* y, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) y[i] = a[i] * b[i];
}

// Both gradients at once: either may take the place of any operand.
TIDE_CLONES void multiply_backward(const float* a, const float* b, const float* dy, float* da, float* db, Index count) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) {
    const float first = dy[i] * b[i], second = dy[i] * a[i];
    da[i] = first;
    db[i] = second;
  }
}

TIDE_CLONES void add_columns(const float* source, Index rows, Index stride, Index columns, float* target) {
  for (Index row = 0; row < rows; ++row) {
    const float* from = source + row * stride;
#pragma omp simd
    for (Index c = 0; c < columns; ++c) target[c] += from[c];
  }
}

using Unary = void (*)(const float*, float*, Index);
using Binary = void (*)(const float*, const float*, float*, Index);

Kernel unary_kernel(Unary function, std::size_t from, std::size_t to, Index count, int threads) {
  return [=](const Launch& launch) {
    const auto* x = input_of<float>(launch, from);
    auto* y = output_of<float>(launch, to);
    const bool streamed = count >= kStreamedFloats && y != x;
    parallel_ranges(threads, count, kElementGrain, [&](Index begin, Index end) {
      write_rows(y, begin, end, 1, streamed,
                 [&](Index i, Index size, float* target) { function(x + i, target, size); });
    });
  };
}

Kernel binary_kernel(Binary function, std::size_t first, std::size_t second, std::size_t to, Index count, int threads) {
  return [=](const Launch& launch) {
    const auto *a = input_of<float>(launch, first), *b = input_of<float>(launch, second);
    auto* y = output_of<float>(launch, to);
    const bool streamed = count >= kStreamedFloats && y != a && y != b;
    parallel_ranges(threads, count, kElementGrain, [&](Index begin, Index end) {
      write_rows(y, begin, end, 1, streamed,
                 [&](Index i, Index size, float* target) { function(a + i, b + i, target, size); });
    });
  };
}

Index count_of(const TaskView& view, std::size_t position) { return view.shape(position).elements(); }

// Backward takes y and dy.
Recipe unary_recipe(const TaskView& view, const ContextPtr& context, Unary forward, Binary backward) {
  const int threads = threads_of(context);
  if (view.is_forward()) {
    const std::size_t y = view.written(Role::y);
    return recipe(unary_kernel(forward, view.read(Role::x), y, count_of(view, y), threads));
  }
  const std::size_t dx = view.written(Role::dx);
  return recipe(binary_kernel(backward, view.read(Role::y), view.read(Role::dy), dx, count_of(view, dx), threads));
}

Recipe copy_recipe(const TaskView& view, const ContextPtr& context, Role from, Role to) {
  const int threads = threads_of(context);
  const std::size_t source = view.read(from);
  const std::vector<std::size_t> targets = view.all_written(to);
  const Index count = count_of(view, source);
  return recipe([=](const Launch& launch) {
    const auto* x = input_of<float>(launch, source);
    parallel_ranges(threads, count, kElementGrain, [&](Index begin, Index end) {
      for (const std::size_t target : targets) {
        auto* y = output_of<float>(launch, target);
        if (y != x) std::memcpy(y + begin, x + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
      }
    });
  });
}

}  // namespace

void add_floats(float* target, const float* source, Index count, int threads) {
  parallel_ranges(threads, count, kElementGrain,
                  [&](Index begin, Index end) { add(target + begin, source + begin, target + begin, end - begin); });
}

void sum_rows(float* target, const float* source, Index rows, Index columns, bool accumulate, int threads) {
  parallel_ranges(threads, columns, 256, [&](Index begin, Index end) {
    if (!accumulate) std::memset(target + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float));
    add_columns(source + begin, rows, columns, end - begin, target + begin);
  });
}

Recipe relu_recipe(const TaskView& view, const ContextPtr& context) {
  return unary_recipe(view, context, relu_forward, relu_backward);
}

Recipe sigmoid_recipe(const TaskView& view, const ContextPtr& context) {
  return unary_recipe(view, context, sigmoid_forward, sigmoid_backward);
}

Recipe tanh_recipe(const TaskView& view, const ContextPtr& context) {
  return unary_recipe(view, context, tanh_forward, tanh_backward);
}

Recipe add_recipe(const TaskView& view, const ContextPtr& context) {
  return view.is_forward() ? sum_recipe(view, context, Role::x, Role::y)
                           : copy_recipe(view, context, Role::dy, Role::dx);
}

Recipe fork_recipe(const TaskView& view, const ContextPtr& context) {
  return view.is_forward() ? copy_recipe(view, context, Role::x, Role::y)
                           : sum_recipe(view, context, Role::dy, Role::dx);
}

Recipe sum_recipe(const TaskView& view, const ContextPtr& context, Role from, Role to) {
  const int threads = threads_of(context);
  const std::vector<std::size_t> sources = view.all_read(from);
  const std::size_t target = view.written(to);
  // A parameter's gradient may lie in more bytes than its shape says.
  const bool stored = view.tensor(target).tensor_class == TensorClass::parameter_gradient;
  const Index count = stored
                          ? bytes_of(view.step(), view.operand(sources[0])).count() / static_cast<Index>(sizeof(float))
                          : count_of(view, target);
  if (sources.size() == 2) return recipe(binary_kernel(add, sources[0], sources[1], target, count, threads));
  return recipe([=](const Launch& launch) {
    auto* y = output_of<float>(launch, target);
    parallel_ranges(threads, count, kElementGrain, [&](Index begin, Index end) {
      // Summed in a buffer, since y may be any of the sources.
      std::array<float, 2048> sum;
      for (Index i = begin; i < end; i += static_cast<Index>(sum.size())) {
        const Index size = std::min(end - i, static_cast<Index>(sum.size()));
        std::memcpy(sum.data(), input_of<float>(launch, sources[0]) + i,
                    static_cast<std::size_t>(size) * sizeof(float));
        for (std::size_t s = 1; s < sources.size(); ++s)
          add(sum.data(), input_of<float>(launch, sources[s]) + i, sum.data(), size);
        std::memcpy(y + i, sum.data(), static_cast<std::size_t>(size) * sizeof(float));
      }
    });
  });
}

Recipe multiply_recipe(const TaskView& view, const ContextPtr& context) {
  const int threads = threads_of(context);
  const std::size_t a = view.read(Role::x, 0), b = view.read(Role::x, 1);
  if (view.is_forward()) {
    const std::size_t y = view.written(Role::y);
    return recipe(binary_kernel(multiply, a, b, y, count_of(view, y), threads));
  }
  const std::size_t dy = view.read(Role::dy);
  const std::vector<std::size_t> targets = view.all_written(Role::dx);
  const Index count = count_of(view, dy);
  if (targets.size() == 1) {
    const std::size_t other = view.operand(targets[0]).index == 0 ? b : a;
    return recipe(binary_kernel(multiply, dy, other, targets[0], count, threads));
  }
  return recipe([=](const Launch& launch) {
    const auto *x0 = input_of<float>(launch, a), *x1 = input_of<float>(launch, b),
               *gradient = input_of<float>(launch, dy);
    auto *dx0 = output_of<float>(launch, targets[0]), *dx1 = output_of<float>(launch, targets[1]);
    parallel_ranges(threads, count, kElementGrain, [&](Index begin, Index end) {
      multiply_backward(x0 + begin, x1 + begin, gradient + begin, dx0 + begin, dx1 + begin, end - begin);
    });
  });
}

}  // namespace tide::cpu
