// Sums down the columns of NHWC matrices. Each block sums a part of the rows for its channels in
// floats; a second kernel merges the parts in double precision, always in the same order.
#pragma once

#include "backend/cuda/column_sums.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {

// About eight blocks of 256 threads for each of an H200's 132 multiprocessors.
template <typename Type>
ColumnGrid reduction_grid(const RowsAndChannels& s) {
  constexpr std::int64_t kReductionBlocks = 1024, kMostParts = 512;
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
//   start<width>(channel, first_row, channels): what a thread keeps of its channels;
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
    const auto kept = terms.template start<width>(group * width, first, channels);
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

// The merging kernels: kMergeLanes threads for each of a few channels, each of which merges every
// kMergeLanes-th part; then the lanes are merged. Few parts a thread, since each costs a wait for
// memory.
inline constexpr int kMergeLanes = 64;
inline constexpr int kMergeColumns = 8;
inline dim3 merge_block() { return {kMergeColumns, kMergeLanes}; }
inline unsigned merge_blocks(const RowsAndChannels& s) { return blocks_for(s.channels, kMergeColumns); }

using MergeMemory = double[kMergeLanes][kMergeColumns];
__device__ inline double merge_lanes(double value, MergeMemory& shared) {
  __syncthreads();
  shared[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kMergeLanes / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
    __syncthreads();
  }
  return shared[0][threadIdx.x];
}

}  // namespace tide::cuda
