#include <algorithm>

#include "backend/cuda/spread_sums.cuh"

namespace tide::cuda {

Broadcast with_fewest_axes(const Broadcast& given) {
  Broadcast made;
  for (int axis = 0; axis < given.rank; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (given.extent[a] == 1) continue;
    const auto last = static_cast<std::size_t>(made.rank - 1);
    const auto goes_on = [&](std::size_t which) {
      return made.stride[which][last] == given.stride[which][a] * given.extent[a];
    };
    const bool joins = made.rank > 0 && goes_on(0) && goes_on(1);
    const std::size_t to = joins ? last : static_cast<std::size_t>(made.rank++);
    made.extent[to] = joins ? made.extent[to] * given.extent[a] : given.extent[a];
    for (std::size_t which = 0; which < 2; ++which) made.stride[which][to] = given.stride[which][a];
  }
  if (made.rank == 0) {
    made.rank = 1;
    made.extent[0] = 1;
  }
  return made;
}

SpreadIndex SpreadIndex::of(const Broadcast& b, int width) {
  SpreadIndex index{};
  index.rank = b.rank;
  index.packs = b.elements() / width;
  for (int axis = 0; axis < b.rank; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const bool last = axis == b.rank - 1;
    index.extent[axis] = Divider::of(last ? b.extent[a] / width : b.extent[a]);
    for (std::size_t which = 0; which < 2; ++which) {
      index.stride[which][axis] = b.stride[which][a] * (last ? width : 1);
      if (last) index.single[which] = width > 1 && b.stride[which][a] == 0;
    }
  }
  return index;
}

bool spreads_packs(const Broadcast& b, int width) {
  const auto last = static_cast<std::size_t>(b.rank - 1);
  if (b.extent[last] % width != 0) return false;
  for (const auto& strides : b.stride) {
    if (strides[last] == 0) continue;
    if (strides[last] != 1) return false;
    for (std::size_t axis = 0; axis < last; ++axis)
      if (strides[axis] % width != 0) return false;
  }
  return true;
}

std::optional<MiddleSums> middle_sums(const Broadcast& b, std::size_t which) {
  MiddleSums sums{1, 1, 1};
  int axis = 0;
  const auto take = [&](std::int64_t& into, bool summed) {
    for (; axis < b.rank && (b.stride[which][static_cast<std::size_t>(axis)] == 0) == summed; ++axis)
      into *= b.extent[static_cast<std::size_t>(axis)];
  };
  take(sums.outer, false);
  take(sums.rows, true);
  take(sums.channels, false);
  if (axis < b.rank || sums.channels > INT32_MAX) return std::nullopt;
  // The targets lie in the order of the whole.
  for (std::int64_t next = 1; axis-- > 0;) {
    const auto a = static_cast<std::size_t>(axis);
    if (b.stride[which][a] == 0) continue;
    if (b.stride[which][a] != next) return std::nullopt;
    next *= b.extent[a];
  }
  // Nothing is summed: then the channels are all.
  if (sums.rows == 1 && sums.outer <= INT32_MAX) std::swap(sums.outer, sums.channels);
  // A block for each of many short sums would be mostly idle.
  if (sums.channels == 1 && sums.rows < 8 * kThreads) return std::nullopt;
  return sums;
}

AnySums AnySums::of(const Broadcast& b, std::size_t which) {
  AnySums sums{};
  sums.which = static_cast<int>(which);
  sums.kept.count = sums.summed.count = 1;
  std::int64_t whole = b.elements();
  for (int axis = 0; axis < b.rank; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    whole /= b.extent[a];
    Axes& axes = b.stride[which][a] == 0 ? sums.summed : sums.kept;
    axes.extent[axes.rank] = Divider::of(b.extent[a]);
    axes.whole[axes.rank] = whole;
    axes.value[0][axes.rank] = b.stride[0][a];
    axes.value[1][axes.rank] = b.stride[1][a];
    axes.count *= b.extent[a];
    ++axes.rank;
  }
  sums.lanes = 1;
  while (sums.lanes < kThreads && sums.lanes < sums.summed.count) sums.lanes *= 2;
  constexpr std::int64_t kWantedBlocks = 1024;
  const std::int64_t blocks = blocks_for(sums.kept.count, kThreads / sums.lanes);
  std::int64_t parts = std::min<std::int64_t>(kMostParts, kWantedBlocks / blocks);
  parts = std::max<std::int64_t>(1, std::min(parts, sums.summed.count / (4 * kThreads)));
  sums.per_part = (sums.summed.count + parts - 1) / parts;
  sums.parts = blocks_for(sums.summed.count, sums.per_part);
  return sums;
}

namespace {

constexpr int kPartColumns = 32, kPartLanes = 8;

template <typename Partial, typename Type>
__global__ void merge_parts_kernel(std::int64_t targets, Divider channels, unsigned parts, const Partial* partial,
                                   Type* target, bool adds, double factor) {
  __shared__ double shared[kPartLanes][kPartColumns];
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * kPartColumns + threadIdx.x;
  double sum = 0;
  if (t < targets) {
    const std::int64_t outer = channels.divide(t), channel = t - outer * channels.by;
    const Partial* const own = partial + outer * parts * channels.by + channel;
#pragma unroll 4
    for (unsigned part = threadIdx.y; part < parts; part += kPartLanes)
      sum += static_cast<double>(own[part * channels.by]);
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || t >= targets) return;
  for (int lane = 1; lane < kPartLanes; ++lane) sum += shared[lane][threadIdx.x];
  sum *= factor;
  put(target + t, static_cast<float>(adds ? sum + static_cast<double>(to_float(target[t])) : sum));
}

template <typename Partial>
cudaError_t merge_parts(cudaStream_t stream, std::int64_t outer, unsigned parts, std::int64_t channels,
                        const Partial* partial, const SumTarget& target) {
  const std::int64_t targets = outer * channels;
  return with_element(target.element, [&](auto type) {
    merge_parts_kernel<<<blocks_for(targets, kPartColumns), dim3(kPartColumns, kPartLanes), 0, stream>>>(
        targets, Divider::of(channels), parts, partial, static_cast<decltype(type)*>(target.address), target.adds,
        target.factor);
    return cudaGetLastError();
  });
}

}  // namespace

cudaError_t launch_merge_parts(cudaStream_t stream, std::int64_t outer, unsigned parts, std::int64_t channels,
                               const float* partial, const SumTarget& target) {
  return merge_parts(stream, outer, parts, channels, partial, target);
}
cudaError_t launch_merge_parts(cudaStream_t stream, std::int64_t outer, unsigned parts, std::int64_t channels,
                               const double* partial, const SumTarget& target) {
  return merge_parts(stream, outer, parts, channels, partial, target);
}

}  // namespace tide::cuda
