// Elements in other places: shuffles, transposes, reshapes; and whole samples or channels that are dropped. Kernels,
// and the recipes that launch them.
#include "backend/cuda/recipe.h"
#include "backend/cuda/spread.cuh"
#include "backend/rearrangement.h"
#include "base/random.h"

namespace tide::cuda {
namespace {

// Rearrangement (backend/rearrangement.h) with divisions made ready.
struct RearrangedIndex {
  int out_rank, digits;
  std::int64_t count;
  Divider out_extent[Rearrangement::kMostDigits], digit_extent[Rearrangement::kMostDigits];
  std::int64_t out_place[Rearrangement::kMostDigits], in_stride[Rearrangement::kMostDigits];

  static RearrangedIndex of(const Rearrangement& r, std::int64_t count) {
    RearrangedIndex index{};
    index.count = count;
    // Axes of one element have nothing to say.
    const auto add = [](int& number, Divider* extents, std::int64_t* strides, std::int64_t extent,
                        std::int64_t stride) {
      if (extent == 1) return;
      extents[number] = Divider::of(extent);
      strides[number++] = stride;
    };
    for (int axis = 0; axis < r.out_rank; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      add(index.out_rank, index.out_extent, index.out_place, r.out_extent[a], r.out_place[a]);
    }
    for (int digit = 0; digit < r.digits; ++digit) {
      const auto d = static_cast<std::size_t>(digit);
      add(index.digits, index.digit_extent, index.in_stride, r.digit_extent[d], r.in_stride[d]);
    }
    return index;
  }
};

// What is counted through these extents, row major, by what each step is worth.
__device__ std::int64_t counted(int rank, const Divider* extents, const std::int64_t* worth, std::int64_t index) {
  std::int64_t sum = 0;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const std::int64_t next = extents[axis].divide(index);
    sum += (index - next * extents[axis].by) * worth[axis];
    index = next;
  }
  return sum;
}

template <typename Type>
__global__ void __launch_bounds__(kThreads) rearrange_kernel(RearrangedIndex s, const Type* x, Type* y) {
  const std::int64_t i = thread_index();
  if (i >= s.count) return;
  const std::int64_t place = counted(s.out_rank, s.out_extent, s.out_place, i);
  y[i] = x[counted(s.digits, s.digit_extent, s.in_stride, place)];
}

Recipe rearranged_recipe(const TaskView& view, const ContextPtr& context) {
  const bool forward = view.is_forward();
  const std::size_t from = forward ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = forward ? view.written(Role::y) : view.written(Role::dx);
  const RearrangedIndex index = RearrangedIndex::of(rearrangement_of(view), view.input().elements());
  return recipe([=, element = element_of(view, to)](const Launch& launch) {
    if (index.count == 0) return;
    with_element(element, [&](auto type) {
      using Type = decltype(type);
      rearrange_kernel<<<blocks_for(index.count), kThreads, 0, context->stream()>>>(index, input_of<Type>(launch, from),
                                                                                    output_of<Type>(launch, to));
    });
    check(cudaGetLastError(), "rearranging");
  });
}

// What each sample, or each of its channels, is multiplied by.
struct DropPathShape {
  std::int64_t samples, units, first_sample;  // units: of one sample
  std::uint32_t stream;
  float rate;
};

// One thread for the four numbers of one block of the generator.
__global__ void drop_factors_kernel(DropPathShape s, const DeviceState* state, std::int64_t blocks, float* factors) {
  const std::int64_t i = thread_index();
  if (i >= s.samples * blocks) return;
  const std::int64_t sample = i / blocks, block = i - sample * blocks;
  const Random4 bits = random_block(state->seed, RandomUse::dropout, state->step, s.stream,
                                    static_cast<std::uint64_t>(state->first_sample + s.first_sample + sample),
                                    static_cast<std::uint64_t>(block));
  const float kept = 1.0F / (1.0F - s.rate);
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (4 * block + k < s.units) factors[sample * s.units + 4 * block + k] = to_unit(bits[k]) >= s.rate ? kept : 0.0F;
}

template <typename Type>
struct DropPathWork {
  const Type* x;
  const float* factors;
  Type* y;
  template <int width>
  __device__ void run(const SpreadIndex& s, const SpreadPlace& at) const {
    Pack<width> value = Pack<width>::load(x + at.whole);
    const Pack<width> factor = load_spread<width>(factors + at.value[1], s.single[1]);
    for (int k = 0; k < width; ++k) value.v[k] = factor.v[k] == 0.0F ? 0.0F : value.v[k] * factor.v[k];
    value.store(y + at.whole);
  }
};

}  // namespace

Recipe channel_shuffle_recipe(const TaskView& view, const ContextPtr& context) {
  return rearranged_recipe(view, context);
}
Recipe transpose_recipe(const TaskView& view, const ContextPtr& context) { return rearranged_recipe(view, context); }
Recipe reshape_recipe(const TaskView& view, const ContextPtr& context) { return rearranged_recipe(view, context); }

// Backward is forward with dy for x.
Recipe drop_path_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<DropPathOptions>();
  const std::size_t from = view.is_forward() ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = view.is_forward() ? view.written(Role::y) : view.written(Role::dx);
  const Shape shape = view.input();
  const std::int64_t channels = shape.channels(), positions = shape.positions();
  const DropPathShape s{shape.batch(), options.per_channel ? channels : 1, view.first_sample(), view.random_stream(),
                        static_cast<float>(options.rate)};
  Broadcast b;
  b.rank = 3;
  b.extent = {shape.batch(), positions, channels};
  b.stride[0] = {positions * channels, channels, 1};
  if (options.per_channel)
    b.stride[1] = {channels, 0, 1};
  else
    b.stride[1] = {1, 0, 0};
  b = with_fewest_axes(b);
  const std::int64_t blocks = (s.units + 3) / 4;
  const auto kernel = [=, element = element_of(view, to)](const Launch& launch) {
    context->set_state(*launch.state);
    auto* const factors = reinterpret_cast<float*>(launch.workspace);
    drop_factors_kernel<<<blocks_for(s.samples * blocks), kThreads, 0, context->stream()>>>(s, context->state(), blocks,
                                                                                            factors);
    with_element(element, [&](auto type) {
      using Type = decltype(type);
      const DropPathWork<Type> work{input_of<Type>(launch, from), factors, output_of<Type>(launch, to)};
      launch_spread<Type>(context->stream(), b, is_packed(work.x) && is_packed(work.y), work);
    });
    check(cudaGetLastError(), "dropping paths");
  };
  return recipe(kernel, static_cast<std::size_t>(s.samples * s.units) * sizeof(float));
}

}  // namespace tide::cuda
