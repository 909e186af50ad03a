// A thread makes a strip of neighbouring pixels of a few channels, so that each pixel that it reads serves several
// that it makes. Threads of a block share a tile of rows and columns, whose borders they find in the cache.
#include <algorithm>

#include "backend/cuda/column_sums.h"
#include "backend/cuda/depthwise_convolution.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {
namespace {

constexpr int kStrip = 4;
constexpr int kMostGroups = 8;  // of channels in a block: 128 bytes beside each other

// How threads of a block are shared out: by groups of channels, then by strips.
struct Tile {
  int groups;         // of channels, in a block
  int strips;         // that a block makes at a time
  int columns, rows;  // of strips, in a block
};

// --- to pixels

struct Gather {
  std::int64_t rows;  // of all samples, of the target
  int channels, height, width, source_height, source_width, pad_top, pad_left;
  int strips;  // in a row of the target
  Tile tile;
};

// Which pixels of a source row a strip needs, from `first` on, and how they meet the kernel's columns.
//   to small: target pixel i takes source pixel i * stride + k
//   to large: target pixel i takes source pixel (i + parity - k) / stride, where that is whole
template <int kernel, int stride, int parity, bool to_large>
struct Meeting {
  static constexpr int first = !to_large     ? 0
                               : stride == 1 ? 1 - kernel
                               : parity == 0 ? -(kernel - 1) / 2
                                             : -(kernel - 3) / 2;
  static constexpr int last = !to_large     ? (kStrip - 1) * stride + kernel - 1
                              : stride == 1 ? kStrip - 1
                                            : (kStrip - 2) / 2 + parity;
  static constexpr int count = last - first + 1;
  __device__ static constexpr int column(int i, int j) {
    return to_large ? i + parity - (j + first) * stride : j - i * stride;
  }
};

template <typename Type, int kernel, int stride, int parity, bool to_large>
__global__ void __launch_bounds__(kThreads, 2)
    gather_kernel(Gather g, const Type* source, const float* weights, Type* target) {
  using Meets = Meeting<kernel, stride, parity, to_large>;
  constexpr int width = kPackOf<Type>, taps = kernel * kernel;
  __shared__ alignas(16) float shared[taps * kMostGroups * width];
  const int block_channels = g.tile.groups * width, first_channel = static_cast<int>(blockIdx.z) * block_channels;
  for (int i = static_cast<int>(threadIdx.x); i < block_channels * taps; i += kThreads) {
    const int channel = i / taps, tap = i - channel * taps;
    shared[tap * block_channels + channel] =
        first_channel + channel < g.channels ? weights[static_cast<std::int64_t>(first_channel) * taps + i] : 0.0F;
  }
  __syncthreads();
  const int unit = static_cast<int>(threadIdx.x) / g.tile.groups;
  const int in_block = (static_cast<int>(threadIdx.x) - unit * g.tile.groups) * width;
  const int channel = first_channel + in_block, unit_row = unit / g.tile.columns;
  const int strip = static_cast<int>(blockIdx.y) * g.tile.columns + unit - unit_row * g.tile.columns;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * g.tile.rows + unit_row;
  if (unit_row >= g.tile.rows || row >= g.rows || strip >= g.strips || channel >= g.channels) return;
  const std::int64_t sample = row / g.height;
  const int h = static_cast<int>(row - sample * g.height), w = strip * kStrip;
  const int from = to_large ? w / stride + g.pad_left / stride + Meets::first : w * stride - g.pad_left;

  float sums[kStrip][width] = {};
#pragma unroll
  for (int kh = 0; kh < kernel; ++kh) {
    int y = to_large ? h + g.pad_top - kh : h * stride - g.pad_top + kh;
    if (to_large && stride > 1) {
      if (y % stride != 0) continue;
      y /= stride;
    }
    if (y < 0 || y >= g.source_height) continue;
    const Type* const line = source + (sample * g.source_height + y) * g.source_width * g.channels + channel;
    Raw<Type, width> raw[Meets::count];
#pragma unroll
    for (int j = 0; j < Meets::count; ++j) {
      const int x = from + j;
      raw[j] = x >= 0 && x < g.source_width ? Raw<Type, width>::load(line + static_cast<std::int64_t>(x) * g.channels)
                                            : Raw<Type, width>{};
    }
    float factor[kernel][width];
#pragma unroll
    for (int kw = 0; kw < kernel; ++kw)
#pragma unroll
      for (int c = 0; c < width; c += 4)
        *reinterpret_cast<float4*>(&factor[kw][c]) =
            *reinterpret_cast<const float4*>(shared + (kh * kernel + kw) * block_channels + in_block + c);
#pragma unroll
    for (int j = 0; j < Meets::count; ++j) {
      const auto value = Pack<width>::of(raw[j]);
#pragma unroll
      for (int i = 0; i < kStrip; ++i) {
        const int kw = Meets::column(i, j);
        if (kw < 0 || kw >= kernel) continue;
#pragma unroll
        for (int c = 0; c < width; ++c) sums[i][c] += value.v[c] * factor[kw][c];
      }
    }
  }
  Type* const to = target + (row * g.width + w) * g.channels + channel;
#pragma unroll
  for (int i = 0; i < kStrip; ++i) {
    if (w + i >= g.width) break;
    Pack<width> made;
#pragma unroll
    for (int c = 0; c < width; ++c) made.v[c] = sums[i][c];
    made.store(to + static_cast<std::int64_t>(i) * g.channels);
  }
}

int parts_of(int whole, int part) { return (whole + part - 1) / part; }

// The groups of channels in a block, so that blocks have about as many each.
int groups_in_block(int groups, int most) { return parts_of(groups, parts_of(groups, most)); }

Gather gather_of(const DirectConvolution& s, Element element, bool to_large) {
  constexpr int kMostColumns = 4;
  Gather g{};
  g.channels = s.large_channels;
  g.height = to_large ? s.large_height : s.small_height;
  g.width = to_large ? s.large_width : s.small_width;
  g.source_height = to_large ? s.small_height : s.large_height;
  g.source_width = to_large ? s.small_width : s.large_width;
  g.rows = s.batch * g.height;
  g.pad_top = s.pad_top, g.pad_left = s.pad_left;
  g.strips = parts_of(g.width, kStrip);
  g.tile.groups = groups_in_block(g.channels / (16 / static_cast<int>(size_of(element))), kMostGroups);
  g.tile.strips = kThreads / g.tile.groups;
  g.tile.columns = groups_in_block(g.strips, kMostColumns);
  g.tile.rows = g.tile.strips / g.tile.columns;
  return g;
}

template <typename Type, int kernel, int stride, int parity, bool to_large>
cudaError_t launch_gather(cudaStream_t stream, const Gather& g, const void* source, const float* weights,
                          void* target) {
  const dim3 grid{blocks_for(g.rows, g.tile.rows), blocks_for(g.strips, g.tile.columns),
                  blocks_for(g.channels, g.tile.groups * kPackOf<Type>)};
  gather_kernel<Type, kernel, stride, parity, to_large>
      <<<grid, kThreads, 0, stream>>>(g, static_cast<const Type*>(source), weights, static_cast<Type*>(target));
  return cudaGetLastError();
}

// --- to weights

struct Products {
  std::int64_t strips;           // of all rows of the small side
  std::int64_t strips_per_part;  // a part of them is a block's
  int parts, channels, large_height, large_width, small_height, small_width, pad_top, pad_left;
  int strips_per_row;
  Tile tile;
};

constexpr int kProductThreads = 128;
// Pixels of the small side that a thread has at a time, and channels: as many as registers hold.
constexpr int product_strip(int stride) { return stride == 1 ? 4 : 2; }
template <typename Type>
constexpr int product_width(int kernel) {
  return kernel == 3 ? kPackOf<Type> : 4;
}

template <typename Type, int kernel, int stride>
__global__ void __launch_bounds__(kProductThreads)
    products_kernel(Products p, const Type* large, const Type* small, float* partial) {
  constexpr int width = product_width<Type>(kernel), taps = kernel * kernel, strip = product_strip(stride);
  constexpr int pixels = (strip - 1) * stride + kernel;
  __shared__ float shared[kProductThreads * width];
  const int unit = static_cast<int>(threadIdx.x) / p.tile.groups;
  const int group = static_cast<int>(threadIdx.x) - unit * p.tile.groups;
  const int block_channels = p.tile.groups * width, first_channel = static_cast<int>(blockIdx.y) * block_channels;
  const int channel = first_channel + group * width;
  const bool works = unit < p.tile.strips && channel < p.channels;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * p.strips_per_part;
  const std::int64_t end = begin + p.strips_per_part < p.strips ? begin + p.strips_per_part : p.strips;

  float sums[taps][width] = {};
  for (std::int64_t at = works ? begin + unit : end; at < end; at += p.tile.strips) {
    const std::int64_t row = at / p.strips_per_row, sample = row / p.small_height;
    const int w = static_cast<int>(at - row * p.strips_per_row) * strip;
    const int h = static_cast<int>(row - sample * p.small_height);
    const Type* const own = small + (row * p.small_width + w) * p.channels + channel;
    Pack<width> arriving[strip];
#pragma unroll
    for (int i = 0; i < strip; ++i)
      arriving[i] =
          w + i < p.small_width ? Pack<width>::load(own + static_cast<std::int64_t>(i) * p.channels) : Pack<width>{};
#pragma unroll
    for (int kh = 0; kh < kernel; ++kh) {
      const int y = h * stride - p.pad_top + kh;
      if (y < 0 || y >= p.large_height) continue;
      const Type* const line = large + (sample * p.large_height + y) * p.large_width * p.channels + channel;
      Raw<Type, width> raw[pixels];
#pragma unroll
      for (int j = 0; j < pixels; ++j) {
        const int x = w * stride - p.pad_left + j;
        raw[j] = x >= 0 && x < p.large_width ? Raw<Type, width>::load(line + static_cast<std::int64_t>(x) * p.channels)
                                             : Raw<Type, width>{};
      }
#pragma unroll
      for (int j = 0; j < pixels; ++j) {
        const auto value = Pack<width>::of(raw[j]);
#pragma unroll
        for (int i = 0; i < strip; ++i) {
          const int kw = j - i * stride;
          if (kw < 0 || kw >= kernel) continue;
#pragma unroll
          for (int c = 0; c < width; ++c) sums[kh * kernel + kw][c] += value.v[c] * arriving[i].v[c];
        }
      }
    }
  }
  // Sums over the block's threads, one weight of each channel after the other.
  float* const to = partial + (static_cast<std::int64_t>(blockIdx.x) * p.channels + first_channel) * taps;
#pragma unroll
  for (int tap = 0; tap < taps; ++tap) {
    if (unit < p.tile.strips)
#pragma unroll
      for (int c = 0; c < width; ++c) shared[unit * block_channels + group * width + c] = sums[tap][c];
    __syncthreads();
    const int own = static_cast<int>(threadIdx.x);
    if (own < block_channels && first_channel + own < p.channels) {
      float sum = 0;
      for (int u = 0; u < p.tile.strips; ++u) sum += shared[u * block_channels + own];
      to[own * taps + tap] = sum;
    }
    __syncthreads();
  }
}

Products products_of(const DirectConvolution& s, Element element) {
  constexpr std::int64_t kBlocks = 2048, kMostParts = 512, kRounds = 4;
  const int pack = 16 / static_cast<int>(size_of(element)), width = s.kernel_height == 3 ? pack : 4;
  Products p{};
  p.channels = s.large_channels;
  p.large_height = s.large_height, p.large_width = s.large_width;
  p.small_height = s.small_height, p.small_width = s.small_width;
  p.pad_top = s.pad_top, p.pad_left = s.pad_left;
  p.strips_per_row = parts_of(s.small_width, product_strip(s.stride_width));
  p.strips = s.batch * s.small_height * p.strips_per_row;
  const int groups = s.large_channels / width;
  p.tile.groups = groups_in_block(groups, kMostGroups * pack / width);
  p.tile.strips = kProductThreads / p.tile.groups;
  // Few enough that each thread has several strips to add up.
  const std::int64_t rounds = p.tile.strips * kRounds;
  const std::int64_t wanted = std::min(kBlocks / parts_of(groups, p.tile.groups), kMostParts);
  const std::int64_t parts = std::clamp<std::int64_t>(p.strips / rounds, 1, std::max<std::int64_t>(wanted, 1));
  p.strips_per_part = (p.strips + parts - 1) / parts;
  p.parts = static_cast<int>((p.strips + p.strips_per_part - 1) / p.strips_per_part);
  return p;
}

RowsAndChannels sums_of(const Products& p, int kernel) {
  return {p.parts, static_cast<std::int64_t>(p.channels) * kernel * kernel};
}
std::size_t partial_bytes(const RowsAndChannels& sums) {
  constexpr std::size_t kAligned = 256;
  return (static_cast<std::size_t>(sums.rows * sums.channels) * sizeof(float) + kAligned - 1) / kAligned * kAligned;
}

// function(constant of the kernel's size, constant of the stride).
template <typename Function>
cudaError_t with_window(const DirectConvolution& s, Function function) {
  using std::integral_constant;
  if (s.kernel_height == 3)
    return s.stride_height == 1 ? function(integral_constant<int, 3>{}, integral_constant<int, 1>{})
                                : function(integral_constant<int, 3>{}, integral_constant<int, 2>{});
  return s.stride_height == 1 ? function(integral_constant<int, 5>{}, integral_constant<int, 1>{})
                              : function(integral_constant<int, 5>{}, integral_constant<int, 2>{});
}

}  // namespace

bool is_fast_depthwise(const DirectConvolution& s, Element element) {
  const int pack = 16 / static_cast<int>(size_of(element));
  return s.groups == s.large_channels && s.groups == s.small_channels && s.groups % pack == 0 &&
         s.kernel_height == s.kernel_width && (s.kernel_height == 3 || s.kernel_height == 5) &&
         s.stride_height == s.stride_width && (s.stride_height == 1 || s.stride_height == 2) &&
         s.dilation_height == 1 && s.dilation_width == 1;
}

std::size_t depthwise_weights_bytes(const DirectConvolution& s, Element element) {
  const RowsAndChannels sums = sums_of(products_of(s, element), s.kernel_height);
  return partial_bytes(sums) + column_sum_bytes(sums, Element::f32);
}

cudaError_t launch_depthwise_to_small(cudaStream_t stream, const DirectConvolution& s, Element element,
                                      const void* large, const float* weights, void* small) {
  const Gather g = gather_of(s, element, false);
  return with_element(element, [&](auto type) {
    return with_window(s, [&](auto kernel, auto stride) {
      return launch_gather<decltype(type), kernel(), stride(), 0, false>(stream, g, large, weights, small);
    });
  });
}

cudaError_t launch_depthwise_to_large(cudaStream_t stream, const DirectConvolution& s, Element element,
                                      const void* small, const float* weights, void* large) {
  const Gather g = gather_of(s, element, true);
  return with_element(element, [&](auto type) {
    return with_window(s, [&](auto kernel, auto stride) {
      if (stride() == 2 && g.pad_left % 2 == 1)
        return launch_gather<decltype(type), kernel(), stride(), stride() - 1, true>(stream, g, small, weights, large);
      return launch_gather<decltype(type), kernel(), stride(), 0, true>(stream, g, small, weights, large);
    });
  });
}

cudaError_t launch_depthwise_to_weights(cudaStream_t stream, const DirectConvolution& s, Element element,
                                        const void* large, const void* small, float* weights, bool accumulate,
                                        std::byte* workspace) {
  const Products p = products_of(s, element);
  auto* const partial = reinterpret_cast<float*>(workspace);
  const RowsAndChannels sums = sums_of(p, s.kernel_height);
  const cudaError_t error = with_element(element, [&](auto type) {
    using Type = decltype(type);
    return with_window(s, [&](auto kernel, auto stride) {
      constexpr int width = product_width<Type>(kernel());
      const dim3 grid{static_cast<unsigned>(p.parts), blocks_for(p.channels, p.tile.groups * width)};
      products_kernel<Type, kernel(), stride()><<<grid, kProductThreads, 0, stream>>>(
          p, static_cast<const Type*>(large), static_cast<const Type*>(small), partial);
      return cudaGetLastError();
    });
  });
  if (error != cudaSuccess) return error;
  return launch_column_sums(stream, sums, Element::f32, partial, weights, accumulate, workspace + partial_bytes(sums));
}

}  // namespace tide::cuda
