// Sums down the columns of NHWC matrices. Each block sums a part of the rows for its channels in
// floats; a second kernel merges the parts in double precision, always in the same order.
#pragma once

#include "backend/cuda/column_sums.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {

inline constexpr int kMostParts = 512;
// About eight blocks of 256 threads for each of an H200's 132 multiprocessors.
template <typename Type>
ColumnGrid reduction_grid(const RowsAndChannels& s) {
  constexpr std::int64_t kReductionBlocks = 1024;
  return ColumnGrid::of<Type>(s.rows, s.channels, kReductionBlocks, kMostParts);
}

template <typename Type>
std::size_t partial_floats(const RowsAndChannels& s, int sums) {
  return static_cast<std::size_t>(sums) * reduction_grid<Type>(s).parts * static_cast<std::size_t>(s.channels);
}

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

// What a kernel sums is a type with:
//   kSums, kRows (of which loads are under way together);
//   start<width>(channel): what a thread keeps of its channels;
//   fetch<width>(at): what is loaded of one row;
//   add(kept, fetched, at, sums): its terms.
// partial[(sum * parts + part) * channels + channel]
template <int width, typename Terms>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(std::int64_t rows, ColumnGrid grid, Terms terms, float* partial) {
  __shared__ float4 shared[kThreads * (width > 4 ? 2 : 1)];
  const int group = static_cast<int>(blockIdx.x) * grid.tx + static_cast<int>(threadIdx.x);
  const std::int64_t channels = static_cast<std::int64_t>(grid.groups) * width;
  const std::int64_t first = blockIdx.y * grid.rows_per_part, end = min(rows, first + grid.rows_per_part);
  Pack<width> sums[Terms::kSums] = {};
  const bool inside = group < grid.groups;
  if (inside) {
    const auto kept = terms.template start<width>(group * width);
    std::int64_t at = (first + threadIdx.y) * channels + group * width;
    const std::int64_t stride = grid.ty * channels;
    constexpr int kRows = Terms::kRows;
    for (std::int64_t row = first + threadIdx.y; row < end; row += kRows * grid.ty, at += kRows * stride) {
      decltype(terms.template fetch<width>(at)) fetched[kRows];
#pragma unroll
      for (int u = 0; u < kRows; ++u)
        if (row + u * grid.ty < end) fetched[u] = terms.template fetch<width>(at + u * stride);
#pragma unroll
      for (int u = 0; u < kRows; ++u)
        if (row + u * grid.ty < end) terms.add(kept, fetched[u], at + u * stride, sums);
    }
  }
  for (int s = 0; s < Terms::kSums; ++s) {
    const Pack<width> total = sum_down(sums[s], reinterpret_cast<float*>(shared));
    if (inside && threadIdx.y == 0)
      total.store(partial + (static_cast<std::int64_t>(s) * grid.parts + blockIdx.y) * channels + group * width);
  }
}

template <typename Type, typename Terms>
void launch_reduce(cudaStream_t stream, const RowsAndChannels& s, const ColumnGrid& grid, const Terms& terms,
                   float* partial) {
  if (grid.width > 1)
    reduce_kernel<kPackOf<Type>><<<grid.grid(), grid.block(), 0, stream>>>(s.rows, grid, terms, partial);
  else
    reduce_kernel<1><<<grid.grid(), grid.block(), 0, stream>>>(s.rows, grid, terms, partial);
}

// The merging kernels: kMergeLanes threads for each of a few channels, which have all of their loads
// under way at once; such a kernel is nothing but waiting for memory.
inline constexpr int kMergeColumns = 8, kMergeLanes = 64;
inline constexpr int kMergeWarps = kMergeColumns * kMergeLanes / 32, kPartsPerLane = kMostParts / kMergeLanes;
inline dim3 merge_block() { return {kMergeColumns, kMergeLanes}; }
inline unsigned merge_blocks(const RowsAndChannels& s) { return blocks_for(s.channels, kMergeColumns); }
__device__ inline std::int64_t merge_channel() {
  return static_cast<std::int64_t>(blockIdx.x) * kMergeColumns + threadIdx.x;
}
// The thread that has the sums of its channel.
__device__ inline bool has_merged(const RowsAndChannels& s) { return threadIdx.y == 0 && merge_channel() < s.channels; }

template <int sums>
struct Merged {
  double v[static_cast<std::size_t>(sums)];
};
// Always in the same order: parts of a lane, lanes of a warp, warps.
template <int sums>
__device__ Merged<sums> merge_parts(const RowsAndChannels& s, int parts, const float* partial) {
  __shared__ double shared[sums][kMergeWarps][kMergeColumns];
  const std::int64_t c = merge_channel();
  float values[sums][kPartsPerLane];
#pragma unroll
  for (int k = 0; k < sums; ++k)
#pragma unroll
    for (int u = 0; u < kPartsPerLane; ++u) {
      const int part = static_cast<int>(threadIdx.y) + u * kMergeLanes;
      values[k][u] = part < parts && c < s.channels
                         ? partial[(static_cast<std::int64_t>(k) * parts + part) * s.channels + c]
                         : 0.0F;
    }
  const unsigned thread = threadIdx.y * kMergeColumns + threadIdx.x;
  Merged<sums> merged{};
#pragma unroll
  for (int k = 0; k < sums; ++k) {
    double sum = 0;
    for (int u = 0; u < kPartsPerLane; ++u) sum += static_cast<double>(values[k][u]);
    for (int distance = kMergeColumns; distance < 32; distance *= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
    if (thread % 32 < kMergeColumns) shared[k][thread / 32][threadIdx.x] = sum;
  }
  __syncthreads();
  if (threadIdx.y == 0)
    for (int k = 0; k < sums; ++k)
#pragma unroll
      for (int warp = 0; warp < kMergeWarps; ++warp) merged.v[k] += shared[k][warp][threadIdx.x];
  return merged;
}

}  // namespace tide::cuda
