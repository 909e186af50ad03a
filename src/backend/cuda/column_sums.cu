#include "backend/cuda/column_sums.cuh"

namespace tide::cuda {
namespace {

template <typename Type>
struct PlainTerms {
  const Type* x;
  static constexpr int kSums = 1, kRows = 4;
  template <int width>
  __device__ int start(int) const {
    return 0;
  }
  template <int width>
  __device__ Raw<Type, width> fetch(std::int64_t at) const {
    return Raw<Type, width>::load(x + at);
  }
  template <int width>
  __device__ void add(int, const Raw<Type, width>& fetched, std::int64_t, Pack<width>* sums) const {
    const Pack<width> value = Pack<width>::of(fetched);
    for (int k = 0; k < width; ++k) sums[0].v[k] += value.v[k];
  }
};

__global__ void merge_sums_kernel(RowsAndChannels s, int parts, const float* partial, float* target, bool accumulate) {
  const std::int64_t c = merge_channel();
  const double before = accumulate && has_merged(s) ? static_cast<double>(target[c]) : 0;
  const double sum = merge_parts<1>(s, parts, partial).v[0];
  if (has_merged(s)) target[c] = static_cast<float>(before + sum);
}

}  // namespace

std::size_t column_sum_bytes(const RowsAndChannels& s, Element element) {
  return with_element(element, [&](auto type) { return partial_floats<decltype(type)>(s, 1) * sizeof(float); });
}

cudaError_t launch_column_sums(cudaStream_t stream, const RowsAndChannels& s, Element element, const void* x,
                               float* target, bool accumulate, std::byte* workspace) {
  auto* partial = reinterpret_cast<float*>(workspace);
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    const ColumnGrid grid = reduction_grid<Type>(s);
    launch_reduce<Type>(stream, s, grid, PlainTerms<Type>{static_cast<const Type*>(x)}, partial);
    merge_sums_kernel<<<merge_blocks(s), merge_block(), 0, stream>>>(s, static_cast<int>(grid.parts), partial, target,
                                                                     accumulate);
    return cudaGetLastError();
  });
}

}  // namespace tide::cuda
