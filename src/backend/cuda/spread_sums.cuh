// Sums over what a value was spread to: gradients of small values and of parameters, and means. Each block sums a part;
// a second kernel merges the parts in double precision, always in the same order.
#pragma once

#include <array>
#include <optional>

#include "backend/cuda/column_sums.cuh"
#include "backend/cuda/spread.cuh"

namespace tide::cuda {

// The whole as outer x rows x channels, of which the rows are summed up.
struct MiddleSums {
  std::int64_t outer, rows, channels;
  [[nodiscard]] constexpr std::int64_t targets() const { return outer * channels; }
};
// Nothing where `which` is not summed over one run of axes. REQUIRES: the other value is whole, and b is as
// with_fewest_axes() makes it.
[[nodiscard]] std::optional<MiddleSums> middle_sums(const Broadcast& b, std::size_t which);

struct MiddleGrid {
  ColumnGrid grid;
  MiddleSums sums;

  template <typename Type>
  static MiddleGrid of(const MiddleSums& sums) {
    constexpr std::int64_t kWantedBlocks = 1024;
    return {ColumnGrid::of<Type>(sums.rows, sums.channels, (kWantedBlocks + sums.outer - 1) / sums.outer, kMostParts),
            sums};
  }
  [[nodiscard]] std::int64_t blocks() const { return sums.outer * grid.columns * grid.parts; }
};

// partial[((sum * outer + o) * parts + part) * channels + channel]; terms as those of reduce_kernel, which start at a
// target.
template <int width, typename Terms>
__global__ void __launch_bounds__(kThreads) middle_sums_kernel(MiddleGrid g, Terms terms, float* partial) {
  __shared__ float4 shared[kThreads * (width > 4 ? 2 : 1)];
  const ColumnGrid& grid = g.grid;
  const unsigned part = blockIdx.x % grid.parts, rest = blockIdx.x / grid.parts;
  const std::int64_t outer = rest / grid.columns;
  const int group = static_cast<int>(rest % grid.columns) * grid.tx + static_cast<int>(threadIdx.x);
  const std::int64_t channels = g.sums.channels, rows = g.sums.rows;
  const std::int64_t first = part * grid.rows_per_part, end = min(rows, first + grid.rows_per_part);
  Pack<width> sums[Terms::kSums] = {};
  const bool inside = group < grid.groups;
  const std::int64_t channel = static_cast<std::int64_t>(group) * width;
  if (inside) {
    const auto kept = terms.template start<width>(outer * channels + channel);
    std::int64_t at = (outer * rows + first + threadIdx.y) * channels + channel;
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
      total.store(partial + ((s * g.sums.outer + outer) * grid.parts + part) * channels + channel);
  }
}

// The whole as targets and, for each, the elements that belong to it, wherever they lie.
struct AnySums {
  struct Axes {
    int rank;
    std::int64_t count;
    Divider extent[Broadcast::kMostAxes];
    std::int64_t whole[Broadcast::kMostAxes], value[2][Broadcast::kMostAxes];
  };
  Axes kept, summed;
  int lanes;  // threads for one target
  int which;  // the value that is summed up
  unsigned parts;
  std::int64_t per_part;

  static AnySums of(const Broadcast& b, std::size_t which);
  [[nodiscard]] std::int64_t blocks() const { return parts * std::int64_t{blocks_for(kept.count, kThreads / lanes)}; }
};

__device__ inline SpreadPlace place_of(const AnySums::Axes& axes, std::int64_t index) {
  SpreadPlace place{0, {0, 0}};
  for (int axis = axes.rank - 1; axis >= 0; --axis) {
    const std::int64_t next = axes.extent[axis].divide(index), digit = index - next * axes.extent[axis].by;
    place.whole += digit * axes.whole[axis];
    place.value[0] += digit * axes.value[0][axis];
    place.value[1] += digit * axes.value[1][axis];
    index = next;
  }
  return place;
}

// partial[part * targets + where the target lies]; term(place) is one element's. In double precision: sums over
// channels often cancel.
template <typename Term>
__global__ void __launch_bounds__(kThreads) any_sums_kernel(AnySums s, Term term, double* partial) {
  __shared__ double shared[kThreads];
  const unsigned part = blockIdx.x % s.parts;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % s.lanes;
  const std::int64_t target = static_cast<std::int64_t>(blockIdx.x / s.parts) * (kThreads / s.lanes) + thread / s.lanes;
  double sum = 0;
  const SpreadPlace base = place_of(s.kept, target);
  if (target < s.kept.count) {
    const std::int64_t first = part * s.per_part, end = min(s.summed.count, first + s.per_part);
    for (std::int64_t i = first + lane; i < end; i += s.lanes) {
      SpreadPlace place = place_of(s.summed, i);
      place.whole += base.whole;
      place.value[0] += base.value[0];
      place.value[1] += base.value[1];
      sum += term(place);
    }
  }
  shared[thread] = sum;
  __syncthreads();
  for (int half = s.lanes / 2; half > 0; half /= 2) {
    if (lane < half) shared[thread] += shared[thread + half];
    __syncthreads();
  }
  if (lane == 0 && target < s.kept.count) partial[part * s.kept.count + base.value[s.which]] = shared[thread];
}

// target = (or +=) factor times the sum over the parts.
struct SumTarget {
  void* address;  // null: not wanted
  Element element;
  bool adds = false;
  double factor = 1;
};
// Partial sums of `outer` x parts x channels.
[[nodiscard]] cudaError_t launch_merge_parts(cudaStream_t stream, std::int64_t outer, unsigned parts,
                                             std::int64_t channels, const float* partial, const SumTarget& target);
[[nodiscard]] cudaError_t launch_merge_parts(cudaStream_t stream, std::int64_t outer, unsigned parts,
                                             std::int64_t channels, const double* partial, const SumTarget& target);

// Scratch of the functions below, for `sums` at once.
template <typename Type>
std::size_t middle_sums_bytes(const MiddleSums& sums, int count) {
  return static_cast<std::size_t>(sums.targets()) * MiddleGrid::of<Type>(sums).grid.parts *
         static_cast<std::size_t>(count) * sizeof(float);
}
inline std::size_t any_sums_bytes(const AnySums& sums) {
  return static_cast<std::size_t>(sums.kept.count) * sums.parts * sizeof(double);
}

// A target for each of the sums. `aligned`: all addresses that are gone through are multiples of 16.
template <typename Type, typename Terms>
cudaError_t launch_middle_sums(cudaStream_t stream, const MiddleSums& sums, const Terms& terms,
                               const std::array<SumTarget, Terms::kSums>& targets, std::byte* workspace) {
  auto* const partial = reinterpret_cast<float*>(workspace);
  const MiddleGrid grid = MiddleGrid::of<Type>(sums);
  const auto blocks = static_cast<unsigned>(grid.blocks());
  if (grid.grid.width > 1)
    middle_sums_kernel<kPackOf<Type>><<<blocks, grid.grid.block(), 0, stream>>>(grid, terms, partial);
  else
    middle_sums_kernel<1><<<blocks, grid.grid.block(), 0, stream>>>(grid, terms, partial);
  for (std::size_t s = 0; s < targets.size(); ++s) {
    if (targets[s].address == nullptr) continue;
    const float* const own = partial + static_cast<std::int64_t>(s) * sums.targets() * grid.grid.parts;
    const cudaError_t status = launch_merge_parts(stream, sums.outer, grid.grid.parts, sums.channels, own, targets[s]);
    if (status != cudaSuccess) return status;
  }
  return cudaGetLastError();
}

template <typename Term>
cudaError_t launch_any_sums(cudaStream_t stream, const AnySums& sums, const Term& term, const SumTarget& target,
                            std::byte* workspace) {
  auto* const partial = reinterpret_cast<double*>(workspace);
  any_sums_kernel<<<static_cast<unsigned>(sums.blocks()), kThreads, 0, stream>>>(sums, term, partial);
  // Parts come first here: those of one target lie as far apart as there are targets.
  return launch_merge_parts(stream, 1, sums.parts, sums.kept.count, partial, target);
}

}  // namespace tide::cuda
