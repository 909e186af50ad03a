#include <algorithm>

#include "backend/cuda/mean.h"
#include "backend/cuda/spread_sums.cuh"
#include "base/memory_order.h"

namespace tide::cuda {
namespace {

// The input, over which the result (the first value) is spread.
Broadcast spread_result(const TaskView& view, const std::vector<std::int64_t>& axes) {
  const Shape shape = view.input();
  const auto averaged = [&](std::size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
  };
  // Axes of one element do not matter, so the result is as if they were left out or not, as the output says.
  const Shape result = view.output();
  const bool keeps = result.rank() == shape.rank();
  const Strides strides = strides_of(result, MemoryOrder::channels_last(result.rank()));
  std::vector<std::size_t> place_of(shape.rank(), 0);
  std::size_t left = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (keeps || !averaged(axis)) place_of[axis] = left++;
  const MemoryOrder order = MemoryOrder::channels_last(shape.rank());
  Broadcast b;
  b.rank = static_cast<int>(shape.rank());
  for (std::size_t place = 0; place < shape.rank(); ++place) {
    const std::size_t axis = order.axis(place);
    b.extent[place] = shape.extent(axis);
    if (!averaged(axis)) b.stride[0][place] = strides[place_of[axis]];
  }
  return with_fewest_axes(b);
}

template <typename Type>
struct MeanTerms {
  const Type* x;
  static constexpr int kSums = 1, kRows = 4;
  template <int width>
  __device__ int start(std::int64_t) const {
    return 0;
  }
  template <int width>
  __device__ Raw<Type, width> fetch(std::int64_t at) const {
    return Raw<Type, width>::load(x + at);
  }
  template <int width>
  __device__ void add(int, const Raw<Type, width>& fetched, std::int64_t, Pack<width>* sums) const {
    const Pack<width> value = Pack<width>::of(fetched);
    for (int k = 0; k < width; ++k) sums[0].v[k] += value.v[k];
  }
};

template <typename Type>
struct MeanTerm {
  const Type* x;
  __device__ double operator()(const SpreadPlace& at) const { return static_cast<double>(to_float(x[at.whole])); }
};

template <typename Type>
struct MeanBackwardWork {
  const Type* dy;
  Type* dx;
  float share;
  template <int width>
  __device__ void run(const SpreadIndex& s, const SpreadPlace& at) const {
    Pack<width> value = load_spread<width>(dy + at.value[0], s.single[0]);
    for (int k = 0; k < width; ++k) value.v[k] *= share;
    value.store(dx + at.whole);
  }
};

}  // namespace

Recipe mean_over(const TaskView& view, const ContextPtr& context, const std::vector<std::int64_t>& axes) {
  const Broadcast b = spread_result(view, axes);
  double share = 1;
  for (const std::int64_t axis : axes)
    share /= static_cast<double>(view.input().extent(static_cast<std::size_t>(axis)));
  if (!view.is_forward()) {
    const std::size_t dy = view.read(Role::dy), dx = view.written(Role::dx);
    return recipe([=, element = element_of(view, dx)](const Launch& launch) {
      with_element(element, [&](auto type) {
        using Type = decltype(type);
        const MeanBackwardWork<Type> work{input_of<Type>(launch, dy), output_of<Type>(launch, dx),
                                          static_cast<float>(share)};
        launch_spread<Type>(context->stream(), b, is_packed(work.dy) && is_packed(work.dx), work);
      });
      check(cudaGetLastError(), "a mean");
    });
  }
  const std::size_t x = view.read(Role::x), y = view.written(Role::y);
  const Element element = element_of(view, y);
  const std::optional<MiddleSums> middle = middle_sums(b, 0);
  const AnySums any = AnySums::of(b, 0);
  const auto kernel = [=](const Launch& launch) {
    const SumTarget target{launch.operands[y], element, false, share};
    check(with_element(element,
                       [&](auto type) {
                         using Type = decltype(type);
                         const auto* const from = input_of<Type>(launch, x);
                         if (middle)
                           return launch_middle_sums<Type>(context->stream(), *middle, MeanTerms<Type>{from}, {target},
                                                           launch.workspace);
                         return launch_any_sums(context->stream(), any, MeanTerm<Type>{from}, target, launch.workspace);
                       }),
          "a mean");
  };
  return recipe(kernel, with_element(element, [&](auto type) {
                  return middle ? middle_sums_bytes<decltype(type)>(*middle, 1) : any_sums_bytes(any);
                }));
}

Recipe mean_recipe(const TaskView& view, const ContextPtr& context) {
  return mean_over(view, context, view.options<MeanOptions>().axes);
}

}  // namespace tide::cuda
