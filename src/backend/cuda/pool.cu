#include <type_traits>

#include "backend/cuda/launch_grid.cuh"
#include "backend/cuda/pool.h"

namespace tide::cuda {
namespace {

// Positions along the axes are computed with the stride as a constant where it is a usual one
// (and the dilation 1): divisions by variables would take longer than the memory does. 0: any.
template <int usual>
__device__ int stride_of(const PoolAxis& a) {
  return usual > 0 ? usual : a.stride;
}
template <int usual>
__device__ int dilation_of(const PoolAxis& a) {
  return usual > 0 ? 1 : a.dilation;
}

// Taps [begin, end) of window `o` that lie in the input.
template <int usual>
__device__ int first_tap(const PoolAxis& a, int o) {
  const int start = o * stride_of<usual>(a) - a.before, dilation = dilation_of<usual>(a);
  return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
}
template <int usual>
__device__ int end_tap(const PoolAxis& a, int o) {
  const int room = a.input - (o * stride_of<usual>(a) - a.before), dilation = dilation_of<usual>(a);
  return min(a.kernel, room <= 0 ? 0 : (room + dilation - 1) / dilation);
}
template <int usual>
__device__ int position(const PoolAxis& a, int o, int tap) {
  return o * stride_of<usual>(a) - a.before + tap * dilation_of<usual>(a);
}
// Taps that lie in the padded input.
template <int usual>
__device__ int padded_taps(const PoolAxis& a, int o) {
  const int dilation = dilation_of<usual>(a);
  return min(a.kernel, (a.input + a.before + a.after - o * stride_of<usual>(a) + dilation - 1) / dilation);
}
// Windows [first, end) that may contain position `i`, and the tap of one that does, or -1.
template <int usual>
__device__ int first_window(const PoolAxis& a, int i) {
  const int reach = i + a.before - (a.kernel - 1) * dilation_of<usual>(a), stride = stride_of<usual>(a);
  return reach <= 0 ? 0 : (reach + stride - 1) / stride;
}
template <int usual>
__device__ int end_window(const PoolAxis& a, int i) {
  return min(a.output, (i + a.before) / stride_of<usual>(a) + 1);
}
template <int usual>
__device__ int tap_at(const PoolAxis& a, int o, int i) {
  const int distance = i + a.before - o * stride_of<usual>(a), dilation = dilation_of<usual>(a);
  return distance % dilation == 0 ? distance / dilation : -1;
}

// Where a thread works: a group of channels at one position of one sample.
struct Place {
  std::int64_t sample;
  int row, column, channel;
};
// A line of positions takes blocks of its own: divisions of long numbers would cost more time
// than the memory does.
template <int width>
__device__ bool locate(const PoolShape& p, int rows, int columns, Place& e) {
  const unsigned groups = static_cast<unsigned>(p.channels / width);
  const unsigned i = blockIdx.y * blockDim.x + threadIdx.x;
  const unsigned column = i / groups;
  if (column >= static_cast<unsigned>(columns)) return false;
  e.column = static_cast<int>(column);
  e.channel = static_cast<int>(i - column * groups) * width;
  const unsigned sample = blockIdx.x / static_cast<unsigned>(rows);
  e.sample = sample;
  e.row = static_cast<int>(blockIdx.x - sample * static_cast<unsigned>(rows));
  return true;
}
__device__ std::int64_t input_at(const PoolShape& p, const Place& e, int h, int w) {
  return ((e.sample * p.rows.input + h) * p.columns.input + w) * p.channels + e.channel;
}
__device__ std::int64_t output_at(const PoolShape& p, const Place& e, int h, int w) {
  return ((e.sample * p.rows.output + h) * p.columns.output + w) * p.channels + e.channel;
}

// The first maximum of one window; a NaN wins, so that it is seen.
template <int usual, int width, typename Type>
__device__ void first_maximum(const PoolShape& p, const Type* x, const Place& e, int oh, int ow, float* best,
                              int* where) {
  const int end_row = end_tap<usual>(p.rows, oh), first_column = first_tap<usual>(p.columns, ow),
            end_column = end_tap<usual>(p.columns, ow);
  bool first = true;
  for (int kh = first_tap<usual>(p.rows, oh); kh < end_row; ++kh)
    for (int kw = first_column; kw < end_column; ++kw) {
      const Pack<width> value =
          Pack<width>::load(x + input_at(p, e, position<usual>(p.rows, oh, kh), position<usual>(p.columns, ow, kw)));
      for (int k = 0; k < width; ++k)
        if (first || value.v[k] > best[k] || value.v[k] != value.v[k]) {
          best[k] = value.v[k];
          where[k] = kh * p.columns.kernel + kw;
        }
      first = false;
    }
}

template <int usual, int width, typename Type, typename Position>
__global__ void max_pool_kernel(PoolShape p, const Type* x, Type* y, Position* indices) {
  Place e;
  if (!locate<width>(p, p.rows.output, p.columns.output, e)) return;
  Pack<width> best{};
  int where[width] = {};
  first_maximum<usual, width>(p, x, e, e.row, e.column, best.v, where);
  const std::int64_t out = output_at(p, e, e.row, e.column);
  best.store(y + out);
  if (indices == nullptr) return;
  if constexpr (width > 1 && sizeof(Position) == 1) {
    Position bytes[width];
    for (int k = 0; k < width; ++k) bytes[k] = static_cast<Position>(where[k]);
    Words<width> words;
    memcpy(&words, bytes, sizeof words);
    *reinterpret_cast<Words<width>*>(indices + out) = words;
  } else {
    for (int k = 0; k < width; ++k) indices[out + k] = static_cast<Position>(where[k]);
  }
}

template <int width, typename Position>
__device__ void load_positions(const Position* from, int* where) {
  if constexpr (width > 1 && sizeof(Position) == 1) {
    Position bytes[width];
    const auto words = *reinterpret_cast<const Words<width>*>(from);
    memcpy(bytes, &words, sizeof words);
    for (int k = 0; k < width; ++k) where[k] = bytes[k];
  } else {
    for (int k = 0; k < width; ++k) where[k] = from[k];
  }
}

// Gathers from the windows that contain each position: no two threads write one element, and
// every sum has one order. Without indices the maxima are found again in x.
template <int usual, int width, typename Type, typename Position>
__global__ void max_pool_backward_kernel(PoolShape p, const Position* indices, const Type* x, const Type* dy,
                                         Type* dx) {
  Place e;
  if (!locate<width>(p, p.rows.input, p.columns.input, e)) return;
  Pack<width> sum{};
  const int end_row = end_window<usual>(p.rows, e.row), end_column = end_window<usual>(p.columns, e.column);
  for (int oh = first_window<usual>(p.rows, e.row); oh < end_row; ++oh) {
    const int kh = tap_at<usual>(p.rows, oh, e.row);
    if (kh < 0) continue;
    for (int ow = first_window<usual>(p.columns, e.column); ow < end_column; ++ow) {
      const int kw = tap_at<usual>(p.columns, ow, e.column);
      if (kw < 0) continue;
      const std::int64_t out = output_at(p, e, oh, ow);
      int where[width] = {};
      float best[width];
      if (indices != nullptr)
        load_positions<width>(indices + out, where);
      else
        first_maximum<usual, width>(p, x, e, oh, ow, best, where);
      const Pack<width> from = Pack<width>::load(dy + out);
      for (int k = 0; k < width; ++k) sum.v[k] += where[k] == kh * p.columns.kernel + kw ? from.v[k] : 0.0F;
    }
  }
  sum.store(dx + input_at(p, e, e.row, e.column));
}

// Windows that lie side by side over all of the input: each makes the gradients under it.
template <int size, int width, typename Type, typename Position>
__global__ void tiled_max_pool_backward_kernel(PoolShape p, const Position* indices, const Type* dy, Type* dx) {
  Place e;
  if (!locate<width>(p, p.rows.output, p.columns.output, e)) return;
  const std::int64_t out = output_at(p, e, e.row, e.column);
  int where[width] = {};
  load_positions<width>(indices + out, where);
  const Pack<width> from = Pack<width>::load(dy + out);
#pragma unroll
  for (int kh = 0; kh < size; ++kh)
#pragma unroll
    for (int kw = 0; kw < size; ++kw) {
      Pack<width> value;
      for (int k = 0; k < width; ++k) value.v[k] = where[k] == kh * size + kw ? from.v[k] : 0.0F;
      value.store(dx + input_at(p, e, e.row * size + kh, e.column * size + kw));
    }
}

bool is_tiled(const PoolAxis& a, int size) {
  return a.kernel == size && a.stride == size && a.dilation == 1 && a.before == 0 && a.output * size == a.input;
}

// One over the positions that a window's average counts.
template <int usual>
__device__ float share(const PoolShape& p, bool count_padding, int oh, int ow) {
  const int rows =
      count_padding ? padded_taps<usual>(p.rows, oh) : end_tap<usual>(p.rows, oh) - first_tap<usual>(p.rows, oh);
  const int columns = count_padding ? padded_taps<usual>(p.columns, ow)
                                    : end_tap<usual>(p.columns, ow) - first_tap<usual>(p.columns, ow);
  return 1.0F / static_cast<float>(rows * columns);
}

template <int usual, int width, typename Type>
__global__ void average_pool_kernel(PoolShape p, bool count_padding, const Type* x, Type* y) {
  Place e;
  if (!locate<width>(p, p.rows.output, p.columns.output, e)) return;
  Pack<width> sum{};
  const int end_row = end_tap<usual>(p.rows, e.row), end_column = end_tap<usual>(p.columns, e.column);
  for (int kh = first_tap<usual>(p.rows, e.row); kh < end_row; ++kh)
    for (int kw = first_tap<usual>(p.columns, e.column); kw < end_column; ++kw) {
      const Pack<width> value = Pack<width>::load(
          x + input_at(p, e, position<usual>(p.rows, e.row, kh), position<usual>(p.columns, e.column, kw)));
      for (int k = 0; k < width; ++k) sum.v[k] += value.v[k];
    }
  const float factor = share<usual>(p, count_padding, e.row, e.column);
  for (int k = 0; k < width; ++k) sum.v[k] *= factor;
  sum.store(y + output_at(p, e, e.row, e.column));
}

template <int usual, int width, typename Type>
__global__ void average_pool_backward_kernel(PoolShape p, bool count_padding, const Type* dy, Type* dx) {
  Place e;
  if (!locate<width>(p, p.rows.input, p.columns.input, e)) return;
  Pack<width> sum{};
  const int end_row = end_window<usual>(p.rows, e.row), end_column = end_window<usual>(p.columns, e.column);
  for (int oh = first_window<usual>(p.rows, e.row); oh < end_row; ++oh)
    for (int ow = first_window<usual>(p.columns, e.column); ow < end_column; ++ow) {
      if (tap_at<usual>(p.rows, oh, e.row) < 0 || tap_at<usual>(p.columns, ow, e.column) < 0) continue;
      const float factor = share<usual>(p, count_padding, oh, ow);
      const Pack<width> value = Pack<width>::load(dy + output_at(p, e, oh, ow));
      for (int k = 0; k < width; ++k) sum.v[k] += factor * value.v[k];
    }
  sum.store(dx + input_at(p, e, e.row, e.column));
}

// One block per sample and 32 channels; eight threads share a channel's positions.
constexpr int kShares = 8;
template <typename Type>
__global__ void global_average_pool_kernel(std::int64_t positions, int channels, const Type* x, Type* y) {
  __shared__ float shared[kShares][32];
  const int c = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x);
  float sum = 0;
  if (c < channels) {
    const Type* from = x + static_cast<std::int64_t>(blockIdx.y) * positions * channels + c;
#pragma unroll 4
    for (std::int64_t i = threadIdx.y; i < positions; i += kShares) sum += to_float(from[i * channels]);
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= channels) return;
  float total = 0;
  for (int s = 0; s < kShares; ++s) total += shared[s][threadIdx.x];
  put(y + static_cast<std::int64_t>(blockIdx.y) * channels + c, total / static_cast<float>(positions));
}

template <int width, typename Type>
__global__ void global_average_pool_backward_kernel(std::int64_t count, std::int64_t positions, int channels,
                                                    const Type* dy, Type* dx) {
  const std::int64_t i = thread_index();
  if (i >= count) return;
  const std::int64_t groups = channels / width, row = i / groups, group = i - row * groups;
  const float factor = 1.0F / static_cast<float>(positions);
  Pack<width> value = Pack<width>::load(dy + row / positions * channels + group * width);
  for (int k = 0; k < width; ++k) value.v[k] *= factor;
  value.store(dx + i * width);
}

dim3 line_blocks(const PoolShape& p, int rows, int columns, int width) {
  return {static_cast<unsigned>(p.batch * rows), blocks_for(std::int64_t{columns} * (p.channels / width))};
}
dim3 output_blocks(const PoolShape& p, int width) { return line_blocks(p, p.rows.output, p.columns.output, width); }
dim3 input_blocks(const PoolShape& p, int width) { return line_blocks(p, p.rows.input, p.columns.input, width); }
// Calls launch(stride, width) with both as constants.
template <typename Type, typename Launch>
void with_constants(const PoolShape& p, Launch launch) {
  const int stride = p.rows.stride;
  const bool plain = stride == p.columns.stride && p.rows.dilation == 1 && p.columns.dilation == 1;
  const auto with_width = [&](auto usual) {
    if (p.channels % kPackOf<Type> == 0)
      launch(usual, std::integral_constant<int, kPackOf<Type>>{});
    else
      launch(usual, std::integral_constant<int, 1>{});
  };
  if (plain && stride == 1) return with_width(std::integral_constant<int, 1>{});
  if (plain && stride == 2) return with_width(std::integral_constant<int, 2>{});
  with_width(std::integral_constant<int, 0>{});
}

template <typename Position>
cudaError_t max_pool(cudaStream_t stream, const PoolShape& p, Element element, const void* x, void* y,
                     Position* indices) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    with_constants<Type>(p, [&](auto usual, auto width) {
      max_pool_kernel<usual, width><<<output_blocks(p, width), kThreads, 0, stream>>>(p, static_cast<const Type*>(x),
                                                                                      static_cast<Type*>(y), indices);
    });
    return cudaGetLastError();
  });
}

template <typename Position>
cudaError_t max_pool_backward(cudaStream_t stream, const PoolShape& p, Element element, const Position* indices,
                              const void* x, const void* dy, void* dx) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    with_constants<Type>(p, [&](auto usual, auto width) {
      if (indices != nullptr && is_tiled(p.rows, 2) && is_tiled(p.columns, 2)) {
        tiled_max_pool_backward_kernel<2, width><<<output_blocks(p, width), kThreads, 0, stream>>>(
            p, indices, static_cast<const Type*>(dy), static_cast<Type*>(dx));
        return;
      }
      max_pool_backward_kernel<usual, width><<<input_blocks(p, width), kThreads, 0, stream>>>(
          p, indices, static_cast<const Type*>(x), static_cast<const Type*>(dy), static_cast<Type*>(dx));
    });
    return cudaGetLastError();
  });
}

}  // namespace

cudaError_t launch_max_pool(cudaStream_t stream, const PoolShape& p, Element element, const void* x, void* y,
                            void* indices, bool wide) {
  return wide ? max_pool(stream, p, element, x, y, static_cast<std::int32_t*>(indices))
              : max_pool(stream, p, element, x, y, static_cast<std::uint8_t*>(indices));
}

cudaError_t launch_max_pool_backward(cudaStream_t stream, const PoolShape& p, Element element, const void* indices,
                                     bool wide, const void* dy, void* dx) {
  return wide ? max_pool_backward(stream, p, element, static_cast<const std::int32_t*>(indices), nullptr, dy, dx)
              : max_pool_backward(stream, p, element, static_cast<const std::uint8_t*>(indices), nullptr, dy, dx);
}

cudaError_t launch_max_pool_backward_from_input(cudaStream_t stream, const PoolShape& p, Element element, const void* x,
                                                const void* dy, void* dx) {
  return max_pool_backward(stream, p, element, static_cast<const std::uint8_t*>(nullptr), x, dy, dx);
}

cudaError_t launch_average_pool(cudaStream_t stream, const PoolShape& p, Element element, bool count_padding,
                                const void* x, void* y) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    with_constants<Type>(p, [&](auto usual, auto width) {
      average_pool_kernel<usual, width><<<output_blocks(p, width), kThreads, 0, stream>>>(
          p, count_padding, static_cast<const Type*>(x), static_cast<Type*>(y));
    });
    return cudaGetLastError();
  });
}

cudaError_t launch_average_pool_backward(cudaStream_t stream, const PoolShape& p, Element element, bool count_padding,
                                         const void* dy, void* dx) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    with_constants<Type>(p, [&](auto usual, auto width) {
      average_pool_backward_kernel<usual, width><<<input_blocks(p, width), kThreads, 0, stream>>>(
          p, count_padding, static_cast<const Type*>(dy), static_cast<Type*>(dx));
    });
    return cudaGetLastError();
  });
}

cudaError_t launch_global_average_pool(cudaStream_t stream, std::int64_t batch, std::int64_t positions, int channels,
                                       Element element, const void* x, void* y) {
  const dim3 grid(blocks_for(channels, 32), static_cast<unsigned>(batch)), block(32, kShares);
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    global_average_pool_kernel<<<grid, block, 0, stream>>>(positions, channels, static_cast<const Type*>(x),
                                                           static_cast<Type*>(y));
    return cudaGetLastError();
  });
}

cudaError_t launch_global_average_pool_backward(cudaStream_t stream, std::int64_t batch, std::int64_t positions,
                                                int channels, Element element, const void* dy, void* dx) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    const auto launch = [&](auto width) {
      const std::int64_t count = batch * positions * (channels / width);
      global_average_pool_backward_kernel<width><<<blocks_for(count), kThreads, 0, stream>>>(
          count, positions, channels, static_cast<const Type*>(dy), static_cast<Type*>(dx));
    };
    if (channels % kPackOf<Type> == 0)
      launch(std::integral_constant<int, kPackOf<Type>>{});
    else
      launch(std::integral_constant<int, 1>{});
    return cudaGetLastError();
  });
}

}  // namespace tide::cuda
