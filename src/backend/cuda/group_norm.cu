// Group normalization over NHWC: kernels, and the recipe that launches them. A sample is a matrix of rows x channels.
// Sums are cut into parts that depend on sizes alone; the parts are merged in double precision, always in the
// same order.
#include "backend/cuda/launch_grid.cuh"
#include "backend/cuda/recipe.h"

namespace tide::cuda {
namespace {

// About eight blocks for each of an H200's 132 multiprocessors.
constexpr std::int64_t kWantedBlocks = 1024;
constexpr int kWarp = 32, kWarps = kThreads / kWarp;

struct Groups {
  std::int64_t samples, rows;       // rows: of one sample
  int channels, groups, per_group;  // per_group: channels
  [[nodiscard]] constexpr std::int64_t count() const { return samples * groups; }
  [[nodiscard]] constexpr std::int64_t elements() const { return samples * rows * channels; }
};

// A cut of one sample's rows.
struct Parts {
  std::int64_t rows_per_part;
  unsigned parts;
  // `blocks` for each part of all samples; at least `least` rows in one.
  static Parts of(const Groups& s, std::int64_t blocks, std::int64_t least) {
    std::int64_t wanted = kWantedBlocks / blocks;
    wanted = wanted < 1 ? 1 : wanted;
    std::int64_t rows = (s.rows + wanted - 1) / wanted;
    rows = rows < least ? least : rows;
    return {rows, blocks_for(s.rows, rows)};
  }
};

Parts statistics_parts(const Groups& s) {
  return Parts::of(s, s.count(), (4 * kThreads + s.per_group - 1) / s.per_group);
}

// One block per part of a group: the sum of deviations from its first element, and of their squares.
template <typename Type>
__global__ void __launch_bounds__(kThreads) statistics_kernel(Groups s, Parts p, const Type* x, double2* partial) {
  __shared__ double2 shared[kWarps];
  const std::int64_t group = blockIdx.x / p.parts, part = blockIdx.x % p.parts;
  const Type* from = x + group / s.groups * s.rows * s.channels + group % s.groups * s.per_group;
  const float pivot = to_float(from[0]);
  const std::int64_t first = part * p.rows_per_part, end = min(s.rows, first + p.rows_per_part);
  // A thread keeps to one channel where a row has no more of them than the block has threads.
  const int across = min(s.per_group, kThreads), down = kThreads / across;
  const int column = static_cast<int>(threadIdx.x) % across, lane = static_cast<int>(threadIdx.x) / across;
  float sum = 0, squares = 0;
  if (lane < down)
    for (std::int64_t row = first + lane; row < end; row += down)
      for (int c = column; c < s.per_group; c += across) {
        const float deviation = to_float(from[row * s.channels + c]) - pivot;
        sum += deviation;
        squares += deviation * deviation;
      }
  double2 total{static_cast<double>(sum), static_cast<double>(squares)};
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    total.x += __shfl_xor_sync(0xFFFFFFFFU, total.x, distance);
    total.y += __shfl_xor_sync(0xFFFFFFFFU, total.y, distance);
  }
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kWarps; ++warp) {
    total.x += shared[warp].x;
    total.y += shared[warp].y;
  }
  partial[blockIdx.x] = total;
}

template <typename Type>
__global__ void merge_statistics_kernel(Groups s, Parts p, const Type* x, const double2* partial, double epsilon,
                                        float* mean, float* deviation) {
  const std::int64_t group = thread_index();
  if (group >= s.count()) return;
  double sum = 0, squares = 0;
  for (unsigned part = 0; part < p.parts; ++part) {
    sum += partial[group * p.parts + part].x;
    squares += partial[group * p.parts + part].y;
  }
  const auto count = static_cast<double>(s.rows * s.per_group);
  const double offset = sum / count, variance = squares / count - offset * offset;
  const Type* from = x + group / s.groups * s.rows * s.channels + group % s.groups * s.per_group;
  mean[group] = static_cast<float>(static_cast<double>(to_float(from[0])) + offset);
  // Not fmax, which would hide a NaN.
  deviation[group] = static_cast<float>(1 / sqrt((variance < 0 ? 0 : variance) + epsilon));
}

// Which group a pack of neighbouring channels is in, element by element.
struct Place {
  int channel;
  std::int64_t first_group;  // of its sample
  __device__ static Place of(const Groups& s, std::int64_t at) {
    return {static_cast<int>(at % s.channels), at / (s.rows * s.channels) * s.groups};
  }
  __device__ std::int64_t group(const Groups& s, int k) const { return first_group + (channel + k) / s.per_group; }
};

template <int width, typename Type>
__global__ void apply_kernel(Groups s, const Type* x, const float* mean, const float* deviation, const float* scale,
                             const float* shift, Type* y) {
  const std::int64_t at = thread_index() * width;
  if (at >= s.elements()) return;
  const Place place = Place::of(s, at);
  Pack<width> value = Pack<width>::load(x + at);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const std::int64_t group = place.group(s, k);
    const int c = place.channel + k;
    value.v[k] = (value.v[k] - mean[group]) * (deviation[group] * scale[c]) + shift[c];
  }
  value.store(y + at);
}

// Blocks of tx x ty threads, one channel per thread.
struct ChannelBlocks {
  int tx, ty;
  unsigned columns;
  static ChannelBlocks of(const Groups& s) {
    int tx = 1;
    while (tx < kWarp && tx < s.channels) tx *= 2;
    return {tx, kThreads / tx, blocks_for(s.channels, tx)};
  }
};

Parts gradient_parts(const Groups& s) {
  const ChannelBlocks blocks = ChannelBlocks::of(s);
  return Parts::of(s, s.samples * blocks.columns, 4 * static_cast<std::int64_t>(blocks.ty));
}

// partial[(sample * parts + part) * channels + channel]: the sums of dy and of dy * (x - mean).
template <typename Type>
__global__ void __launch_bounds__(kThreads)
    gradient_sums_kernel(Groups s, Parts p, const Type* x, const Type* dy, const float* mean, float2* partial) {
  __shared__ float2 shared[kThreads];
  const int c = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const std::int64_t sample = blockIdx.x / p.parts, part = blockIdx.x % p.parts;
  const std::int64_t first = part * p.rows_per_part, end = min(s.rows, first + p.rows_per_part);
  float2 sums{0, 0};
  if (c < s.channels) {
    const float average = mean[sample * s.groups + c / s.per_group];
    for (std::int64_t row = first + threadIdx.y; row < end; row += blockDim.y) {
      const std::int64_t at = (sample * s.rows + row) * s.channels + c;
      const float gradient = to_float(dy[at]);
      sums.x += gradient;
      sums.y += gradient * (to_float(x[at]) - average);
    }
  }
  float2* mine = shared + threadIdx.y * blockDim.x + threadIdx.x;
  *mine = sums;
  __syncthreads();
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) {
      mine->x += mine[half * blockDim.x].x;
      mine->y += mine[half * blockDim.x].y;
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && c < s.channels) partial[blockIdx.x * static_cast<std::int64_t>(s.channels) + c] = *mine;
}

// One warp per group: slope and offset of dx = scale * deviation * dy + slope * (x - mean) + offset.
__global__ void merge_groups_kernel(Groups s, unsigned parts, const float2* partial, const float* scale,
                                    const float* deviation, float2* coefficients) {
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (group >= s.count()) return;
  const std::int64_t sample = group / s.groups;
  const int first = static_cast<int>(group % s.groups) * s.per_group;
  double sum = 0, product = 0;
  for (int c = first + static_cast<int>(threadIdx.x) % kWarp; c < first + s.per_group; c += kWarp)
    for (unsigned part = 0; part < parts; ++part) {
      const float2 sums = partial[(sample * parts + part) * s.channels + c];
      sum += static_cast<double>(scale[c]) * static_cast<double>(sums.x);
      product += static_cast<double>(scale[c]) * static_cast<double>(sums.y);
    }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
    product += __shfl_xor_sync(0xFFFFFFFFU, product, distance);
  }
  if (threadIdx.x % kWarp != 0) return;
  const auto inverse = static_cast<double>(deviation[group]), count = static_cast<double>(s.rows * s.per_group);
  coefficients[group] = {static_cast<float>(-inverse * inverse * inverse * product / count),
                         static_cast<float>(-inverse * sum / count)};
}

struct ParameterGradients {
  float *scale, *shift;  // may be null
  bool add_scale, add_shift;
};

// One warp per channel.
__global__ void merge_parameters_kernel(Groups s, unsigned parts, const float2* partial, const float* deviation,
                                        ParameterGradients gradients) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (c >= s.channels) return;
  double sum = 0, product = 0;
  for (std::int64_t i = threadIdx.x % kWarp; i < s.samples * parts; i += kWarp) {
    const float2 sums = partial[i * s.channels + c];
    sum += static_cast<double>(sums.x);
    product += static_cast<double>(sums.y) * static_cast<double>(deviation[i / parts * s.groups + c / s.per_group]);
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
    product += __shfl_xor_sync(0xFFFFFFFFU, product, distance);
  }
  if (threadIdx.x % kWarp != 0) return;
  if (gradients.scale != nullptr)
    gradients.scale[c] = static_cast<float>(product) + (gradients.add_scale ? gradients.scale[c] : 0.0F);
  if (gradients.shift != nullptr)
    gradients.shift[c] = static_cast<float>(sum) + (gradients.add_shift ? gradients.shift[c] : 0.0F);
}

template <int width, typename Type>
__global__ void spread_kernel(Groups s, const Type* x, const Type* dy, const float* mean, const float* deviation,
                              const float* scale, const float2* coefficients, Type* dx) {
  const std::int64_t at = thread_index() * width;
  if (at >= s.elements()) return;
  const Place place = Place::of(s, at);
  const Pack<width> value = Pack<width>::load(x + at);
  Pack<width> gradient = Pack<width>::load(dy + at);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const std::int64_t group = place.group(s, k);
    const float2 coefficient = coefficients[group];
    gradient.v[k] = scale[place.channel + k] * deviation[group] * gradient.v[k] +
                    (coefficient.x * (value.v[k] - mean[group]) + coefficient.y);
  }
  gradient.store(dx + at);
}

// Calls launch(width) as a compile-time constant: packs where channels allow it.
template <typename Type, typename Launcher>
void with_width(const Groups& s, Launcher launch) {
  if (s.channels % kPackOf<Type> == 0)
    launch(std::integral_constant<int, kPackOf<Type>>{});
  else
    launch(std::integral_constant<int, 1>{});
}

Groups groups_of(const TaskView& view) {
  const Shape shape = view.input();
  const auto channels = static_cast<int>(shape.channels());
  const auto groups = static_cast<int>(view.options<GroupNormOptions>().groups);
  return {shape.batch(), shape.per_sample() / shape.channels(), channels, groups, channels / groups};
}

// Statistics of their own lie behind the partial sums.
Recipe forward_recipe(const TaskView& view, const ContextPtr& context) {
  const Groups s = groups_of(view);
  const Parts p = statistics_parts(s);
  const double epsilon = view.options<GroupNormOptions>().epsilon;
  const std::size_t x = view.read(Role::x), scale = view.read(Role::weight), shift = view.read(Role::bias);
  const std::size_t y = view.written(Role::y);
  const auto known_mean = view.find_read(Role::mean), known_deviation = view.find_read(Role::inverse_deviation);
  const auto mean = known_mean ? known_mean : view.find_written(Role::mean);
  const auto deviation = known_mean ? known_deviation : view.find_written(Role::inverse_deviation);
  const auto count = static_cast<std::size_t>(s.count());
  const std::size_t partial_bytes = known_mean ? 0 : count * p.parts * sizeof(double2);
  const auto kernel = [=, takes = !known_mean, element = element_of(view, x)](const Launch& launch) {
    auto* const own = reinterpret_cast<float*>(launch.workspace + partial_bytes);
    float* const means = mean ? output_of(launch, *mean) : own;
    float* const deviations = mean ? output_of(launch, *deviation) : own + count;
    with_element(element, [&](auto type) {
      using Type = decltype(type);
      const auto* const from = reinterpret_cast<const Type*>(launch.operands[x]);
      if (takes) {
        auto* const partial = reinterpret_cast<double2*>(launch.workspace);
        statistics_kernel<<<static_cast<unsigned>(s.count()) * p.parts, kThreads, 0, context->stream()>>>(s, p, from,
                                                                                                          partial);
        merge_statistics_kernel<<<blocks_for(s.count()), kThreads, 0, context->stream()>>>(s, p, from, partial, epsilon,
                                                                                           means, deviations);
      }
      with_width<Type>(s, [&](auto width) {
        apply_kernel<width><<<blocks_for(s.elements() / width), kThreads, 0, context->stream()>>>(
            s, from, means, deviations, input_of(launch, scale), input_of(launch, shift),
            reinterpret_cast<Type*>(launch.operands[y]));
      });
    });
    check(cudaGetLastError(), "group normalization");
  };
  return recipe(kernel, partial_bytes + (mean ? 0 : 2 * count * sizeof(float)));
}

Recipe backward_recipe(const TaskView& view, const ContextPtr& context) {
  const Groups s = groups_of(view);
  const Parts p = gradient_parts(s);
  const ChannelBlocks blocks = ChannelBlocks::of(s);
  const std::size_t x = view.read(Role::x), dy = view.read(Role::dy), scale = view.read(Role::weight);
  const std::size_t mean = view.read(Role::mean), deviation = view.read(Role::inverse_deviation);
  const auto dx = view.find_written(Role::dx);
  const auto d_scale = view.find_written(Role::d_weight), d_shift = view.find_written(Role::d_bias);
  const bool add_scale = d_scale && view.accumulates(*d_scale), add_shift = d_shift && view.accumulates(*d_shift);
  const std::size_t partial_bytes =
      static_cast<std::size_t>(s.samples) * p.parts * static_cast<std::size_t>(s.channels) * sizeof(float2);
  const auto kernel = [=, element = element_of(view, x)](const Launch& launch) {
    auto* const partial = reinterpret_cast<float2*>(launch.workspace);
    auto* const coefficients = reinterpret_cast<float2*>(launch.workspace + partial_bytes);
    const float *const means = input_of(launch, mean), *const deviations = input_of(launch, deviation);
    const float* const scales = input_of(launch, scale);
    with_element(element, [&](auto type) {
      using Type = decltype(type);
      const auto* const from = reinterpret_cast<const Type*>(launch.operands[x]);
      const auto* const gradient = reinterpret_cast<const Type*>(launch.operands[dy]);
      const dim3 grid(static_cast<unsigned>(s.samples) * p.parts, blocks.columns);
      const dim3 block(static_cast<unsigned>(blocks.tx), static_cast<unsigned>(blocks.ty));
      gradient_sums_kernel<<<grid, block, 0, context->stream()>>>(s, p, from, gradient, means, partial);
      if (d_scale || d_shift)
        merge_parameters_kernel<<<blocks_for(s.channels, kWarps), kThreads, 0, context->stream()>>>(
            s, p.parts, partial, deviations,
            {d_scale ? output_of(launch, *d_scale) : nullptr, d_shift ? output_of(launch, *d_shift) : nullptr,
             add_scale, add_shift});
      if (!dx) return;
      merge_groups_kernel<<<blocks_for(s.count(), kWarps), kThreads, 0, context->stream()>>>(
          s, p.parts, partial, scales, deviations, coefficients);
      with_width<Type>(s, [&](auto width) {
        spread_kernel<width><<<blocks_for(s.elements() / width), kThreads, 0, context->stream()>>>(
            s, from, gradient, means, deviations, scales, coefficients, reinterpret_cast<Type*>(launch.operands[*dx]));
      });
    });
    check(cudaGetLastError(), "group normalization");
  };
  return recipe(kernel, partial_bytes + (dx ? static_cast<std::size_t>(s.count()) * sizeof(float2) : 0));
}

}  // namespace

Recipe group_norm_recipe(const TaskView& view, const ContextPtr& context) {
  return view.is_forward() ? forward_recipe(view, context) : backward_recipe(view, context);
}

}  // namespace tide::cuda
