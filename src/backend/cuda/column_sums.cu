// Each block sums a part of the rows for its channels in floats; a second kernel merges the
// parts in double precision, always in the same order.
#include "backend/cuda/column_sums.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {
namespace {

// About eight blocks of 256 threads for each of an H200's 132 multiprocessors.
constexpr std::int64_t kReductionBlocks = 1024;
constexpr std::int64_t kMostParts = 512;
constexpr std::int64_t kApplyBlocks = 8192;

ColumnGrid reduction_grid(const RowsAndChannels& s) {
  return ColumnGrid::of(s.rows, s.channels, kReductionBlocks, kMostParts);
}
ColumnGrid apply_grid(const RowsAndChannels& s) { return ColumnGrid::of(s.rows, s.channels, kApplyBlocks, 65535); }

// Adds up one value per thread over the block's rows; the sums end in the threads of row 0.
template <int width>
__device__ Pack<width> sum_down(Pack<width> value, float* shared) {
  const int stride = static_cast<int>(blockDim.x) * width;
  float* mine = shared + threadIdx.y * stride + threadIdx.x * width;
  __syncthreads();
  value.store(mine);
  __syncthreads();
  for (int half = static_cast<int>(blockDim.y) / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.y) < half) {
      const Pack<width> other = Pack<width>::load(mine + half * stride);
      for (int k = 0; k < width; ++k) value.v[k] += other.v[k];
      value.store(mine);
    }
    __syncthreads();
  }
  return value;
}

struct PlainTerms {
  const float* x;
  static constexpr int kSums = 1;
  template <int width>
  __device__ void start(int, std::int64_t, std::int64_t) {}
  template <int width>
  __device__ void add(std::int64_t at, Pack<width>* sums) const {
    const Pack<width> value = Pack<width>::load(x + at);
    for (int k = 0; k < width; ++k) sums[0].v[k] += value.v[k];
  }
};

// Sums of the deviation from `pivot` and of its square.
struct DeviationTerms {
  const float* x;
  float pivot[4];
  static constexpr int kSums = 2;
  template <int width>
  __device__ void start(int channel, std::int64_t first_row, std::int64_t channels) {
    const Pack<width> value = Pack<width>::load(x + first_row * channels + channel);
    for (int k = 0; k < width; ++k) pivot[k] = value.v[k];
  }
  template <int width>
  __device__ void add(std::int64_t at, Pack<width>* sums) const {
    const Pack<width> value = Pack<width>::load(x + at);
    for (int k = 0; k < width; ++k) {
      const float deviation = value.v[k] - pivot[k];
      sums[0].v[k] += deviation;
      sums[1].v[k] += deviation * deviation;
    }
  }
};

// Sums of dy and of dy times the deviation of x.
struct GradientTerms {
  const float *x, *dy, *mean;
  float pivot[4];
  static constexpr int kSums = 2;
  template <int width>
  __device__ void start(int channel, std::int64_t, std::int64_t) {
    const Pack<width> value = Pack<width>::load(mean + channel);
    for (int k = 0; k < width; ++k) pivot[k] = value.v[k];
  }
  template <int width>
  __device__ void add(std::int64_t at, Pack<width>* sums) const {
    const Pack<width> value = Pack<width>::load(x + at), gradient = Pack<width>::load(dy + at);
    for (int k = 0; k < width; ++k) {
      sums[0].v[k] += gradient.v[k];
      sums[1].v[k] += gradient.v[k] * (value.v[k] - pivot[k]);
    }
  }
};

// partial[(sum * parts + part) * channels + channel]
template <int width, typename Terms>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(std::int64_t rows, ColumnGrid grid, Terms terms, float* partial) {
  __shared__ float4 shared[kThreads];
  const int group = static_cast<int>(blockIdx.x) * grid.tx + static_cast<int>(threadIdx.x);
  const std::int64_t channels = static_cast<std::int64_t>(grid.groups) * width;
  const std::int64_t first = blockIdx.y * grid.rows_per_part, end = min(rows, first + grid.rows_per_part);
  Pack<width> sums[Terms::kSums] = {};
  const bool inside = group < grid.groups;
  if (inside) {
    terms.template start<width>(group * width, first, channels);
    std::int64_t at = (first + threadIdx.y) * channels + group * width;
    const std::int64_t stride = grid.ty * channels;
#pragma unroll 4
    for (std::int64_t row = first + threadIdx.y; row < end; row += grid.ty, at += stride)
      terms.template add<width>(at, sums);
  }
  for (int s = 0; s < Terms::kSums; ++s) {
    const Pack<width> total = sum_down(sums[s], reinterpret_cast<float*>(shared));
    if (inside && threadIdx.y == 0)
      total.store(partial + (static_cast<std::int64_t>(s) * grid.parts + blockIdx.y) * channels + group * width);
  }
}

template <typename Terms>
void launch_reduce(cudaStream_t stream, const RowsAndChannels& s, const ColumnGrid& grid, const Terms& terms,
                   float* partial) {
  if (grid.width == 4)
    reduce_kernel<4><<<grid.grid(), grid.block(), 0, stream>>>(s.rows, grid, terms, partial);
  else
    reduce_kernel<1><<<grid.grid(), grid.block(), 0, stream>>>(s.rows, grid, terms, partial);
}

// The merging kernels: kLanes threads for each of a few channels, each of which merges every
// kLanes-th part; then the lanes are merged. Few parts a thread, since each costs a wait for memory.
constexpr int kLanes = 64;
constexpr int kColumns = 8;
const dim3 kMergeBlock{kColumns, kLanes};

__device__ double merge_lanes(double value, double (*shared)[kColumns]) {
  __syncthreads();
  shared[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kLanes / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
    __syncthreads();
  }
  return shared[0][threadIdx.x];
}

__global__ void merge_sums_kernel(RowsAndChannels s, int parts, const float* partial, float* target, bool accumulate) {
  __shared__ double shared[kLanes][kColumns];
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  double sum = 0;
  if (c < s.channels)
    for (int part = static_cast<int>(threadIdx.y); part < parts; part += kLanes)
      sum += static_cast<double>(partial[part * s.channels + c]);
  sum = merge_lanes(sum, shared);
  if (threadIdx.y != 0 || c >= s.channels) return;
  target[c] = static_cast<float>(accumulate ? static_cast<double>(target[c]) + sum : sum);
}

// Deviations are from a pivot per part, the part's first row; all are moved to the pivot of
// part 0, in double, where neither sum loses digits.
__global__ void merge_statistics_kernel(RowsAndChannels s, ColumnGrid grid, const float* x, const float* partial,
                                        BatchNormStatistics out) {
  __shared__ double shared[kLanes][kColumns];
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const int parts = static_cast<int>(grid.parts);
  const auto count = static_cast<double>(s.rows);
  const double origin = c < s.channels ? static_cast<double>(x[c]) : 0;
  double sum = 0, squares = 0;
  if (c < s.channels)
#pragma unroll 4
    for (int part = static_cast<int>(threadIdx.y); part < parts; part += kLanes) {
      const std::int64_t first = part * grid.rows_per_part;
      const auto rows = static_cast<double>(min(s.rows, first + grid.rows_per_part) - first);
      const double move = static_cast<double>(x[first * s.channels + c]) - origin;
      const auto part_sum = static_cast<double>(partial[part * s.channels + c]);
      const auto part_squares =
          static_cast<double>(partial[(static_cast<std::int64_t>(parts) + part) * s.channels + c]);
      sum += part_sum + rows * move;
      squares += part_squares + 2 * move * part_sum + rows * move * move;
    }
  sum = merge_lanes(sum, shared);
  squares = merge_lanes(squares, shared);
  if (threadIdx.y != 0 || c >= s.channels) return;
  const double offset = sum / count, mean = origin + offset;
  // max() would turn a NaN into 0.
  double deviations = squares - offset * offset * count;
  deviations = deviations < 0 ? 0 : deviations;
  out.mean[c] = static_cast<float>(mean);
  out.inverse_deviation[c] = static_cast<float>(1 / sqrt(deviations / count + out.epsilon));
  const double unbiased = s.rows > 1 ? deviations / (count - 1) : deviations;
  const double keep = 1 - out.momentum;
  const double old_mean = static_cast<double>(out.running_mean[c]),
               old_variance = static_cast<double>(out.running_variance[c]);
  out.new_running_mean[c] = static_cast<float>(keep * old_mean + out.momentum * mean);
  out.new_running_variance[c] = static_cast<float>(keep * old_variance + out.momentum * unbiased);
}

// coefficients: factor, slope, offset of dx = factor * dy + slope * (x - mean) + offset.
__global__ void merge_gradients_kernel(RowsAndChannels s, int parts, const float* partial, BatchNormBackward b,
                                       float* coefficients) {
  __shared__ double shared[kLanes][kColumns];
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  double sum = 0, product = 0;
  if (c < s.channels)
#pragma unroll 4
    for (int part = static_cast<int>(threadIdx.y); part < parts; part += kLanes) {
      sum += static_cast<double>(partial[part * s.channels + c]);
      product += static_cast<double>(partial[(static_cast<std::int64_t>(parts) + part) * s.channels + c]);
    }
  sum = merge_lanes(sum, shared);
  product = merge_lanes(product, shared);
  if (threadIdx.y != 0 || c >= s.channels) return;
  const auto inverse = static_cast<double>(b.inverse_deviation[c]), count = static_cast<double>(s.rows);
  const double gain = static_cast<double>(b.scale[c]) * inverse;
  coefficients[c] = static_cast<float>(gain);
  coefficients[s.channels + c] = static_cast<float>(-gain * inverse * inverse * product / count);
  coefficients[2 * s.channels + c] = static_cast<float>(-gain * sum / count);
  if (b.d_scale != nullptr) b.d_scale[c] = static_cast<float>(product * inverse) + (b.add_scale ? b.d_scale[c] : 0.0F);
  if (b.d_shift != nullptr) b.d_shift[c] = static_cast<float>(sum) + (b.add_shift ? b.d_shift[c] : 0.0F);
}

constexpr int kUnroll = 4;

// Passes over the rows that follow a reduction go backwards: what it read last is still in the cache.
__device__ std::int64_t backwards(const ColumnGrid& grid) { return (grid.parts - 1 - blockIdx.y) * grid.rows_per_part; }

template <int width>
__global__ void __launch_bounds__(kThreads) apply_kernel(std::int64_t rows, ColumnGrid grid, BatchNormApply a) {
  const int group = static_cast<int>(blockIdx.x) * grid.tx + static_cast<int>(threadIdx.x);
  if (group >= grid.groups) return;
  const int channel = group * width;
  const std::int64_t channels = static_cast<std::int64_t>(grid.groups) * width;
  const Pack<width> mean = Pack<width>::load(a.mean + channel), shift = Pack<width>::load(a.shift + channel);
  const Pack<width> scale = Pack<width>::load(a.scale + channel);
  Pack<width> factor = Pack<width>::load(a.spread + channel);
  for (int k = 0; k < width; ++k) {
    if (a.is_variance) factor.v[k] = static_cast<float>(1 / sqrt(static_cast<double>(factor.v[k]) + a.epsilon));
    factor.v[k] *= scale.v[k];
  }
  const std::int64_t first = backwards(grid), end = min(rows, first + grid.rows_per_part);
  const std::int64_t stride = grid.ty * channels;
  std::int64_t at = (first + threadIdx.y) * channels + channel;
  for (std::int64_t row = first + threadIdx.y; row < end; row += kUnroll * grid.ty, at += kUnroll * stride) {
    Pack<width> value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (row + u * grid.ty < end) value[u] = Pack<width>::load(a.x + at + u * stride);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (row + u * grid.ty < end) {
        for (int k = 0; k < width; ++k) value[u].v[k] = (value[u].v[k] - mean.v[k]) * factor.v[k] + shift.v[k];
        value[u].store(a.y + at + u * stride);
      }
  }
}

template <int width>
__global__ void __launch_bounds__(kThreads)
    gradient_kernel(std::int64_t rows, ColumnGrid grid, BatchNormBackward b, const float* coefficients) {
  const int group = static_cast<int>(blockIdx.x) * grid.tx + static_cast<int>(threadIdx.x);
  if (group >= grid.groups) return;
  const int channel = group * width;
  const std::int64_t channels = static_cast<std::int64_t>(grid.groups) * width;
  const Pack<width> mean = Pack<width>::load(b.mean + channel), factor = Pack<width>::load(coefficients + channel);
  const Pack<width> slope = Pack<width>::load(coefficients + channels + channel);
  const Pack<width> offset = Pack<width>::load(coefficients + 2 * channels + channel);
  const std::int64_t first = backwards(grid), end = min(rows, first + grid.rows_per_part);
  const std::int64_t stride = grid.ty * channels;
  std::int64_t at = (first + threadIdx.y) * channels + channel;
  for (std::int64_t row = first + threadIdx.y; row < end; row += kUnroll * grid.ty, at += kUnroll * stride) {
    Pack<width> value[kUnroll], gradient[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (row + u * grid.ty < end) {
        value[u] = Pack<width>::load(b.x + at + u * stride);
        gradient[u] = Pack<width>::load(b.dy + at + u * stride);
      }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (row + u * grid.ty < end) {
        for (int k = 0; k < width; ++k)
          value[u].v[k] = factor.v[k] * gradient[u].v[k] + (slope.v[k] * (value[u].v[k] - mean.v[k]) + offset.v[k]);
        value[u].store(b.dx + at + u * stride);
      }
  }
}

std::size_t partial_floats(const RowsAndChannels& s, int sums) {
  return static_cast<std::size_t>(sums) * reduction_grid(s).parts * static_cast<std::size_t>(s.channels);
}

unsigned merge_blocks(const RowsAndChannels& s) { return blocks_for(s.channels, kColumns); }

}  // namespace

std::size_t column_sum_bytes(const RowsAndChannels& s) { return partial_floats(s, 1) * sizeof(float); }
std::size_t batch_norm_training_bytes(const RowsAndChannels& s) { return partial_floats(s, 2) * sizeof(float); }
std::size_t batch_norm_backward_bytes(const RowsAndChannels& s) {
  return (partial_floats(s, 2) + 3 * static_cast<std::size_t>(s.channels)) * sizeof(float);
}

cudaError_t launch_column_sums(cudaStream_t stream, const RowsAndChannels& s, const float* x, float* target,
                               bool accumulate, std::byte* workspace) {
  const ColumnGrid grid = reduction_grid(s);
  auto* partial = reinterpret_cast<float*>(workspace);
  launch_reduce(stream, s, grid, PlainTerms{x}, partial);
  merge_sums_kernel<<<merge_blocks(s), kMergeBlock, 0, stream>>>(s, static_cast<int>(grid.parts), partial, target,
                                                                 accumulate);
  return cudaGetLastError();
}

cudaError_t launch_batch_norm_statistics(cudaStream_t stream, const RowsAndChannels& s, const float* x,
                                         const BatchNormStatistics& statistics, std::byte* workspace) {
  const ColumnGrid grid = reduction_grid(s);
  auto* partial = reinterpret_cast<float*>(workspace);
  launch_reduce(stream, s, grid, DeviationTerms{x, {}}, partial);
  merge_statistics_kernel<<<merge_blocks(s), kMergeBlock, 0, stream>>>(s, grid, x, partial, statistics);
  return cudaGetLastError();
}

cudaError_t launch_batch_norm_apply(cudaStream_t stream, const RowsAndChannels& s, const BatchNormApply& apply) {
  const ColumnGrid grid = apply_grid(s);
  if (grid.width == 4)
    apply_kernel<4><<<grid.grid(), grid.block(), 0, stream>>>(s.rows, grid, apply);
  else
    apply_kernel<1><<<grid.grid(), grid.block(), 0, stream>>>(s.rows, grid, apply);
  return cudaGetLastError();
}

cudaError_t launch_batch_norm_backward(cudaStream_t stream, const RowsAndChannels& s, const BatchNormBackward& backward,
                                       std::byte* workspace) {
  const ColumnGrid grid = reduction_grid(s), rows = apply_grid(s);
  auto* partial = reinterpret_cast<float*>(workspace);
  // A multiple of 4 floats wherever packs are used: channels are then one.
  float* coefficients = partial + partial_floats(s, 2);
  launch_reduce(stream, s, grid, GradientTerms{backward.x, backward.dy, backward.mean, {}}, partial);
  merge_gradients_kernel<<<merge_blocks(s), kMergeBlock, 0, stream>>>(s, static_cast<int>(grid.parts), partial,
                                                                      backward, coefficients);
  if (backward.dx == nullptr) return cudaGetLastError();
  if (grid.width == 4)
    gradient_kernel<4><<<rows.grid(), rows.block(), 0, stream>>>(s.rows, rows, backward, coefficients);
  else
    gradient_kernel<1><<<rows.grid(), rows.block(), 0, stream>>>(s.rows, rows, backward, coefficients);
  return cudaGetLastError();
}

}  // namespace tide::cuda
