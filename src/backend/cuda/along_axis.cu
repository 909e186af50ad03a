// Softmax and L2 normalization along one axis: kernels, and the recipes that launch them.
#include "backend/cuda/launch_grid.cuh"
#include "backend/cuda/recipe.h"
#include "base/memory_order.h"

namespace tide::cuda {
namespace {

// Lines along the axis: `count` elements at `step`; line (outer, inner) begins at outer * count * step + inner.
struct AxisLines {
  std::int64_t count, step, outer;
  int across, down, lines;  // threads of a block: over inner; along the axis, for each of some lines of outer
  unsigned tiles;           // of inner

  static AxisLines of(const TaskView& view, std::int64_t axis) {
    const Shape shape = view.input();
    const auto along = static_cast<std::size_t>(axis);
    AxisLines l{};
    l.count = shape.extent(along);
    l.step = strides_of(shape, MemoryOrder::channels_last(shape.rank()))[along];
    l.outer = shape.elements() / (l.count * l.step);
    const auto power = [](std::int64_t wanted, int most) {
      int made = 1;
      while (made < most && made < wanted) made *= 2;
      return made;
    };
    l.across = power(l.step, 32);
    l.down = power(l.count, kThreads / l.across);
    l.lines = kThreads / (l.across * l.down);
    l.tiles = blocks_for(l.step, l.across);
    return l;
  }
  [[nodiscard]] unsigned blocks() const { return tiles * blocks_for(outer, lines); }
  [[nodiscard]] dim3 block() const { return {static_cast<unsigned>(across), static_cast<unsigned>(down * lines)}; }
};

// A thread's part of a line: elements first, first + stride, .. of `end` from `begin` on, with the others of the line.
struct LinePart {
  std::int64_t begin, step;
  int first, stride;
  std::int64_t count;  // 0: no line
  int thread;

  __device__ static LinePart of(const AxisLines& l) {
    const std::int64_t inner = static_cast<std::int64_t>(blockIdx.x % l.tiles) * l.across + threadIdx.x;
    const int row = static_cast<int>(threadIdx.y);
    const std::int64_t outer = static_cast<std::int64_t>(blockIdx.x / l.tiles) * l.lines + row / l.down;
    const bool inside = inner < l.step && outer < l.outer;
    return {outer * l.count * l.step + inner,
            l.step,
            row % l.down,
            l.down,
            inside ? l.count : 0,
            row * l.across + static_cast<int>(threadIdx.x)};
  }
  template <typename Visit>
  __device__ void for_each(Visit visit) const {
    for (std::int64_t i = first; i < count; i += stride) visit(begin + i * step);
  }
  // One value of all threads of the line; combined always in the same order. All threads of the block come here.
  template <typename Value, typename Combine>
  __device__ Value together(Value value, Value* shared, Combine combine) const {
    __syncthreads();
    shared[thread] = value;
    __syncthreads();
    for (int half = stride / 2; half > 0; half /= 2) {
      if (first < half) shared[thread] = combine(shared[thread], shared[thread + half * static_cast<int>(blockDim.x)]);
      __syncthreads();
    }
    return shared[thread - first * static_cast<int>(blockDim.x)];
  }
};

struct Larger {
  __device__ float operator()(float a, float b) const { return b > a ? b : a; }
};
struct Added {
  __device__ double operator()(double a, double b) const { return a + b; }
};

template <typename Type>
__global__ void __launch_bounds__(kThreads) softmax_kernel(AxisLines l, const Type* x, Type* y) {
  __shared__ double shared[kThreads];
  const LinePart line = LinePart::of(l);
  // A NaN is never larger, and ends in the sum.
  float largest = -INFINITY;
  line.for_each([&](std::int64_t at) { largest = Larger{}(largest, to_float(x[at])); });
  largest = line.together(largest, reinterpret_cast<float*>(shared), Larger{});
  double sum = 0;
  line.for_each([&](std::int64_t at) { sum += static_cast<double>(expf(to_float(x[at]) - largest)); });
  sum = line.together(sum, shared, Added{});
  const auto factor = static_cast<float>(1 / sum);
  line.for_each([&](std::int64_t at) { put(y + at, expf(to_float(x[at]) - largest) * factor); });
}

// Gradients are made in double precision: what is left of them is often small beside what they are made of.
template <typename Type>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_kernel(AxisLines l, const Type* y, const Type* dy, Type* dx) {
  __shared__ double shared[kThreads];
  const LinePart line = LinePart::of(l);
  double product = 0;
  line.for_each([&](std::int64_t at) {
    product += static_cast<double>(to_float(y[at])) * static_cast<double>(to_float(dy[at]));
  });
  product = line.together(product, shared, Added{});
  line.for_each([&](std::int64_t at) {
    const double difference = static_cast<double>(to_float(dy[at])) - product;
    put(dx + at, static_cast<float>(static_cast<double>(to_float(y[at])) * difference));
  });
}

template <bool backward, typename Type>
__global__ void __launch_bounds__(kThreads)
    l2_normalize_kernel(AxisLines l, double epsilon, const Type* x, const Type* dy, Type* target) {
  __shared__ double shared[kThreads];
  const LinePart line = LinePart::of(l);
  double squares = 0, product = 0;
  line.for_each([&](std::int64_t at) {
    const auto value = static_cast<double>(to_float(x[at]));
    squares += value * value;
    if constexpr (backward) product += value * static_cast<double>(to_float(dy[at]));
  });
  const double norm = sqrt(line.together(squares, shared, Added{}));
  // A NaN is no less.
  const double inverse = 1 / (norm < epsilon ? epsilon : norm);
  if constexpr (!backward) {
    line.for_each(
        [&](std::int64_t at) { put(target + at, static_cast<float>(static_cast<double>(to_float(x[at])) * inverse)); });
    return;
  }
  product = line.together(product, shared, Added{});
  // Below epsilon the divisor does not depend on x.
  const double back = norm <= epsilon ? 0 : product * inverse * inverse * inverse;
  line.for_each([&](std::int64_t at) {
    const auto value = static_cast<double>(to_float(x[at]));
    put(target + at, static_cast<float>(static_cast<double>(to_float(dy[at])) * inverse - value * back));
  });
}

}  // namespace

Recipe softmax_recipe(const TaskView& view, const ContextPtr& context) {
  const AxisLines l = AxisLines::of(view, view.options<SoftmaxAxisOptions>().axis);
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y);
    return recipe([=, element = element_of(view, y)](const Launch& launch) {
      with_element(element, [&](auto type) {
        using Type = decltype(type);
        softmax_kernel<<<l.blocks(), l.block(), 0, context->stream()>>>(l, input_of<Type>(launch, x),
                                                                        output_of<Type>(launch, y));
      });
      check(cudaGetLastError(), "softmax");
    });
  }
  const std::size_t y = view.read(Role::y), dy = view.read(Role::dy), dx = view.written(Role::dx);
  return recipe([=, element = element_of(view, dx)](const Launch& launch) {
    with_element(element, [&](auto type) {
      using Type = decltype(type);
      softmax_backward_kernel<<<l.blocks(), l.block(), 0, context->stream()>>>(
          l, input_of<Type>(launch, y), input_of<Type>(launch, dy), output_of<Type>(launch, dx));
    });
    check(cudaGetLastError(), "softmax");
  });
}

Recipe l2_normalize_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<L2NormalizeOptions>();
  const AxisLines l = AxisLines::of(view, options.axis);
  const double epsilon = options.epsilon;
  const std::size_t x = view.read(Role::x);
  if (view.is_forward()) {
    const std::size_t y = view.written(Role::y);
    return recipe([=, element = element_of(view, y)](const Launch& launch) {
      with_element(element, [&](auto type) {
        using Type = decltype(type);
        l2_normalize_kernel<false, Type><<<l.blocks(), l.block(), 0, context->stream()>>>(
            l, epsilon, input_of<Type>(launch, x), nullptr, output_of<Type>(launch, y));
      });
      check(cudaGetLastError(), "l2 normalization");
    });
  }
  const std::size_t dy = view.read(Role::dy), dx = view.written(Role::dx);
  return recipe([=, element = element_of(view, dx)](const Launch& launch) {
    with_element(element, [&](auto type) {
      using Type = decltype(type);
      l2_normalize_kernel<true, Type><<<l.blocks(), l.block(), 0, context->stream()>>>(
          l, epsilon, input_of<Type>(launch, x), input_of<Type>(launch, dy), output_of<Type>(launch, dx));
    });
    check(cudaGetLastError(), "l2 normalization");
  });
}

}  // namespace tide::cuda
