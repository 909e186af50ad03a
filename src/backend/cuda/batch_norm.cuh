// What the forward and the backward kernels of batch normalization share.
#pragma once

#include <type_traits>

#include "backend/cuda/batch_norm.h"
#include "backend/cuda/column_sums.cuh"
#include "backend/cuda/functions.cuh"

namespace tide::cuda {

template <typename Type>
ColumnGrid apply_grid(const RowsAndChannels& s) {
  constexpr std::int64_t kApplyBlocks = 8192;
  return ColumnGrid::of<Type>(s.rows, s.channels, kApplyBlocks, 65535);
}

__host__ __device__ inline FunctionNumbers numbers_of(const FusedStep& step) { return {step.minimum, step.maximum}; }

// Calls `use` with the function as a type.
template <typename Use>
void with_fused(FusedFunction function, Use use) {
  using F = FusedFunction;
  switch (function) {
    case F::none: return use(std::integral_constant<F, F::none>{});
    case F::relu: return use(std::integral_constant<F, F::relu>{});
    case F::clip: return use(std::integral_constant<F, F::clip>{});
    case F::silu: return use(std::integral_constant<F, F::silu>{});
    case F::hard_swish: return use(std::integral_constant<F, F::hard_swish>{});
  }
}

// Passes over the rows that follow a reduction go backwards: what it read last is still in the cache.
__device__ inline std::int64_t backwards(const ColumnGrid& grid) {
  return (grid.parts - 1 - blockIdx.y) * grid.rows_per_part;
}

// The one place where x is normalized: backward asks it for what the fused function was made of.
template <int width>
struct Normalizer {
  Pack<width> mean, factor, shift;
  __device__ static Normalizer of(const float* mean, const float* inverse_deviation, const float* scale,
                                  const float* shift, int channel) {
    Normalizer n{Pack<width>::load(mean + channel), Pack<width>::load(inverse_deviation + channel),
                 Pack<width>::load(shift + channel)};
    const Pack<width> gain = Pack<width>::load(scale + channel);
    for (int k = 0; k < width; ++k) n.factor.v[k] *= gain.v[k];
    return n;
  }
  __device__ float operator()(float x, int k) const { return __fmaf_rn(x - mean.v[k], factor.v[k], shift.v[k]); }
};

// What is kept of the mean of `count` rows and of the squares around it; the last two are the running ones so far.
__device__ inline void keep_statistics(const BatchNormStatistics& out, std::int64_t c, double count, double mean,
                                       double squares, double old_mean, double old_variance) {
  out.mean[c] = static_cast<float>(mean);
  out.inverse_deviation[c] = static_cast<float>(1 / sqrt(squares / count + out.epsilon));
  if (out.running_mean == nullptr) return;
  const double unbiased = count > 1 ? squares / (count - 1) : squares;
  const double keep = 1 - out.momentum;
  out.new_running_mean[c] = static_cast<float>(keep * old_mean + out.momentum * mean);
  out.new_running_variance[c] = static_cast<float>(keep * old_variance + out.momentum * unbiased);
}

// Walks down the rows of a thread's part: load(offset) of several rows, then store(offset, what
// was loaded) of each.
template <int kRows, typename Load, typename Store>
__device__ void for_each_row(std::int64_t rows, const ColumnGrid& grid, std::int64_t channels, int channel, Load load,
                             Store store) {
  const std::int64_t first = backwards(grid), end = min(rows, first + grid.rows_per_part);
  const std::int64_t stride = grid.ty * channels;
  std::int64_t at = (first + threadIdx.y) * channels + channel;
  for (std::int64_t row = first + threadIdx.y; row < end; row += kRows * grid.ty, at += kRows * stride) {
    decltype(load(at)) loaded[kRows];
#pragma unroll
    for (int u = 0; u < kRows; ++u)
      if (row + u * grid.ty < end) loaded[u] = load(at + u * stride);
#pragma unroll
    for (int u = 0; u < kRows; ++u)
      if (row + u * grid.ty < end) store(at + u * stride, loaded[u]);
  }
}

}  // namespace tide::cuda
