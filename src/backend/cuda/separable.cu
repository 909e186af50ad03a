// Adaptive pools, resizes and pads: each axis by itself (backend/axis_map.h). Kernels, and the recipes that launch
// them.
#include <type_traits>

#include "backend/cuda/divider.cuh"
#include "backend/cuda/launch_grid.cuh"
#include "backend/cuda/mean.h"
#include "backend/separable.h"

namespace tide::cuda {
namespace {

struct SeparableShape {
  AxisMap channels, height, width;
  float empty;                               // of outputs that are made from nothing
  std::int64_t count;                        // packs that are made
  Divider by_channels, by_width, by_height;  // of what is made: packs of channels, columns, rows
};

__device__ AxisMap::Range terms_of(const AxisMap& map, bool forward, int made) {
  return forward ? map.sources(made) : map.targets(made);
}
__device__ float weight_of(const AxisMap& map, bool forward, int made, int from) {
  return forward ? map.weight(made, from) : map.weight(from, made);
}

// A thread makes neighbouring channels of one place; `keeps`: the channels stay what they are.
template <bool forward, bool keeps, int width, typename Type>
__global__ void __launch_bounds__(kThreads) separable_kernel(SeparableShape s, const Type* from, Type* to) {
  const std::int64_t index = thread_index();
  if (index >= s.count) return;
  const std::int64_t place = s.by_channels.divide(index);
  const int channel = static_cast<int>(index - place * s.by_channels.by) * width;
  const std::int64_t line = s.by_width.divide(place), n = s.by_height.divide(line);
  const int column = static_cast<int>(place - line * s.by_width.by), row = static_cast<int>(line - n * s.by_height.by);
  const std::int64_t channels = forward ? s.channels.in : s.channels.out;
  const std::int64_t height = forward ? s.height.in : s.height.out, columns = forward ? s.width.in : s.width.out;
  const AxisMap::Range rows = terms_of(s.height, forward, row), places = terms_of(s.width, forward, column);
  const AxisMap::Range among = keeps ? AxisMap::Range{channel, channel + 1} : terms_of(s.channels, forward, channel);
  Pack<width> sum{};
  bool is_empty = true;
  for (int h = rows.begin; h < rows.end; ++h) {
    const float of_row = weight_of(s.height, forward, row, h);
    if (of_row == 0.0F) continue;
    for (int w = places.begin; w < places.end; ++w) {
      const float share = of_row * weight_of(s.width, forward, column, w);
      if (share == 0.0F) continue;
      const Type* const source = from + ((n * height + h) * columns + w) * channels;
      if constexpr (keeps) {
        const Pack<width> value = Pack<width>::load(source + channel);
        for (int k = 0; k < width; ++k) sum.v[k] += share * value.v[k];
        is_empty = false;
      } else {
        for (int c = among.begin; c < among.end; ++c) {
          const float whole = share * weight_of(s.channels, forward, channel, c);
          if (whole == 0.0F) continue;
          sum.v[0] += whole * to_float(source[c]);
          is_empty = false;
        }
      }
    }
  }
  if (is_empty)
    for (int k = 0; k < width; ++k) sum.v[k] = s.empty;
  sum.store(to + index * width);
}

bool stays(const AxisMap& map) { return map.kind == AxisMap::Kind::constant && map.in == map.out && map.before == 0; }

template <bool forward, typename Type>
void launch_separable(cudaStream_t stream, SeparableShape s, std::int64_t samples, const Type* from, Type* to) {
  const int channels = forward ? s.channels.out : s.channels.in;
  const bool keeps = stays(s.channels);
  const int width = keeps && channels % kPackOf<Type> == 0 ? kPackOf<Type> : 1;
  s.by_channels = Divider::of(channels / width);
  s.by_width = Divider::of(forward ? s.width.out : s.width.in);
  s.by_height = Divider::of(forward ? s.height.out : s.height.in);
  s.count = samples * s.by_height.by * s.by_width.by * s.by_channels.by;
  if (s.count == 0) return;
  const unsigned blocks = blocks_for(s.count);
  if (width > 1)
    separable_kernel<forward, true, kPackOf<Type>><<<blocks, kThreads, 0, stream>>>(s, from, to);
  else if (keeps)
    separable_kernel<forward, true, 1><<<blocks, kThreads, 0, stream>>>(s, from, to);
  else
    separable_kernel<forward, false, 1><<<blocks, kThreads, 0, stream>>>(s, from, to);
}

Recipe separable_recipe(const TaskView& view, const ContextPtr& context) {
  const SeparableMaps maps = separable_maps(view);
  const bool forward = view.is_forward();
  const std::size_t from = forward ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = forward ? view.written(Role::y) : view.written(Role::dx);
  const std::int64_t samples = view.input().batch();
  SeparableShape shape{};
  shape.channels = maps.channels;
  shape.height = maps.height;
  shape.width = maps.width;
  shape.empty = forward ? maps.value : 0.0F;
  return recipe([=, element = element_of(view, to)](const Launch& launch) {
    with_element(element, [&](auto type) {
      using Type = decltype(type);
      const auto* const source = input_of<Type>(launch, from);
      auto* const target = output_of<Type>(launch, to);
      if (forward)
        launch_separable<true>(context->stream(), shape, samples, source, target);
      else
        launch_separable<false>(context->stream(), shape, samples, source, target);
    });
    check(cudaGetLastError(), "resizing");
  });
}

}  // namespace

Recipe adaptive_average_pool_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<AdaptivePoolOptions>();
  if (options.height == 1 && options.width == 1) return mean_over(view, context, {2, 3});
  return separable_recipe(view, context);
}
Recipe resize_recipe(const TaskView& view, const ContextPtr& context) { return separable_recipe(view, context); }
Recipe pad_recipe(const TaskView& view, const ContextPtr& context) { return separable_recipe(view, context); }

}  // namespace tide::cuda
