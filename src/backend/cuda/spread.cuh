// Values of several shapes that are spread to one (backend/broadcast.h), on the device: a thread makes a pack of
// neighbours of the whole, and finds where each value has what belongs to it.
#pragma once

#include "backend/broadcast.h"
#include "backend/cuda/divider.cuh"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {

// The same with as few axes as will do: none of one element, and neighbours that go on alike are one. At least one
// axis.
[[nodiscard]] Broadcast with_fewest_axes(const Broadcast& given);

struct SpreadIndex {
  int rank;
  std::int64_t packs;
  Divider extent[Broadcast::kMostAxes];  // of packs, the innermost last
  std::int64_t stride[2][Broadcast::kMostAxes];
  bool single[2];  // one element for all of a pack

  static SpreadIndex of(const Broadcast& b, int width);
};

// Where a pack begins.
struct SpreadPlace {
  std::int64_t whole, value[2];

  __device__ static SpreadPlace of(const SpreadIndex& s, std::int64_t pack, int width) {
    SpreadPlace place{pack * width, {0, 0}};
    for (int axis = s.rank - 1; axis > 0; --axis) {
      const std::int64_t next = s.extent[axis].divide(pack), digit = pack - next * s.extent[axis].by;
      place.value[0] += digit * s.stride[0][axis];
      place.value[1] += digit * s.stride[1][axis];
      pack = next;
    }
    place.value[0] += pack * s.stride[0][0];
    place.value[1] += pack * s.stride[1][0];
    return place;
  }
};

template <int width, typename Type>
__device__ Pack<width> load_spread(const Type* from, bool single) {
  if (!single) return Pack<width>::load(from);
  Pack<width> pack;
  const float value = to_float(*from);
  for (int k = 0; k < width; ++k) pack.v[k] = value;
  return pack;
}

// work.template run<width>(index, place) for each pack.
template <int width, typename Work>
__global__ void __launch_bounds__(kThreads) spread_kernel(SpreadIndex s, Work work) {
  const std::int64_t pack = thread_index();
  if (pack < s.packs) work.template run<width>(s, SpreadPlace::of(s, pack, width));
}

inline bool is_packed(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

// Whether packs of this width lie side by side in both values.
[[nodiscard]] bool spreads_packs(const Broadcast& b, int width);

// `aligned`: all addresses that are gone through are multiples of 16.
template <typename Type, typename Work>
void launch_spread(cudaStream_t stream, const Broadcast& b, bool aligned, const Work& work) {
  constexpr int kWidth = kPackOf<Type>;
  const int width = aligned && spreads_packs(b, kWidth) ? kWidth : 1;
  const SpreadIndex index = SpreadIndex::of(b, width);
  if (index.packs == 0) return;
  if (width > 1)
    spread_kernel<kWidth><<<blocks_for(index.packs), kThreads, 0, stream>>>(index, work);
  else
    spread_kernel<1><<<blocks_for(index.packs), kThreads, 0, stream>>>(index, work);
}

}  // namespace tide::cuda
