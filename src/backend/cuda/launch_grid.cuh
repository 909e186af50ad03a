// How kernels are cut into blocks, for all of them alike. Grids are functions of sizes alone,
// never of the device: sums would otherwise have another order on another one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/pack.cuh"

namespace tide::cuda {

inline constexpr int kThreads = 256;

// Blocks for `count` units, `per_block` of them each.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block = kThreads) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

__device__ inline std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Rows x channels of NHWC memory on blocks of tx x ty threads. A thread keeps to one group of
// `width` neighbouring channels and walks down the rows of its part.
struct ColumnGrid {
  int width;         // elements per thread: 16 bytes of them where channels allow it, or 1
  int tx, ty;        // threads across channel groups and down rows
  int groups;        // of channels
  unsigned columns;  // blocks across
  unsigned parts;    // of the rows
  std::int64_t rows_per_part;

  template <typename Type>
  static ColumnGrid of(std::int64_t rows, std::int64_t channels, std::int64_t wanted_blocks, std::int64_t most_parts) {
    ColumnGrid grid{};
    grid.width = channels % kPackOf<Type> == 0 ? kPackOf<Type> : 1;
    grid.groups = static_cast<int>(channels / grid.width);
    grid.tx = 1;
    while (grid.tx < 32 && grid.tx < grid.groups) grid.tx *= 2;
    grid.ty = kThreads / grid.tx;
    grid.columns = blocks_for(grid.groups, grid.tx);
    std::int64_t parts = wanted_blocks / grid.columns;
    parts = parts < 1 ? 1 : parts > most_parts ? most_parts : parts;
    // At least four rows a thread, in whole rounds of the block.
    const std::int64_t round = 4 * static_cast<std::int64_t>(grid.ty);
    grid.rows_per_part = ((rows + parts - 1) / parts + round - 1) / round * round;
    grid.parts = blocks_for(rows, grid.rows_per_part);
    return grid;
  }
  [[nodiscard]] dim3 grid() const { return {columns, parts}; }
  [[nodiscard]] dim3 block() const { return {static_cast<unsigned>(tx), static_cast<unsigned>(ty)}; }
};

}  // namespace tide::cuda
