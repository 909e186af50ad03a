#include "backend/cuda/conversion.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {
namespace {

// Packs per thread: loaded together before the first is stored.
constexpr int kUnroll = 4;
constexpr int kWidth = 4;
constexpr std::int64_t kPerBlock = std::int64_t{kThreads} * kUnroll;

template <typename From, typename To, bool accumulate>
__global__ void convert_kernel(const From* from, To* to, std::int64_t count) {
  const std::int64_t packs = count / kWidth;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kPerBlock + threadIdx.x;
  Raw<From, kWidth> in[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) in[u] = Raw<From, kWidth>::load(from + kWidth * i);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) {
      Pack<kWidth> value = Pack<kWidth>::of(in[u]);
      if constexpr (accumulate) {
        const Pack<kWidth> sum = Pack<kWidth>::load(to + kWidth * i);
        for (int k = 0; k < kWidth; ++k) value.v[k] += sum.v[k];
      }
      value.store(to + kWidth * i);
    }
  const std::int64_t rest = kWidth * packs + first;
  if (first < count - kWidth * packs) put(to + rest, to_float(from[rest]) + (accumulate ? to_float(to[rest]) : 0.0F));
}

template <bool accumulate, typename From, typename To>
cudaError_t convert(cudaStream_t stream, const From* from, To* to, std::int64_t count) {
  convert_kernel<From, To, accumulate>
      <<<blocks_for(count / kWidth + kWidth, kPerBlock), kThreads, 0, stream>>>(from, to, count);
  return cudaGetLastError();
}

template <typename Type, int width>
__global__ void copy_columns_kernel(const Type* from, std::int64_t from_width, Type* to, std::int64_t to_width,
                                    std::int64_t count, std::int64_t groups) {
  const std::int64_t i = thread_index();
  if (i >= count) return;
  const std::int64_t row = i / groups, group = i % groups;
  *reinterpret_cast<Raw<Type, width>*>(to + row * to_width + group * width) =
      Raw<Type, width>::load(from + row * from_width + group * width);
}

template <typename Type, int width>
cudaError_t copy_columns(cudaStream_t stream, const void* from, std::int64_t from_width, void* to,
                         std::int64_t to_width, std::int64_t rows, std::int64_t channels) {
  const std::int64_t groups = channels / width, count = rows * groups;
  copy_columns_kernel<Type, width><<<blocks_for(count), kThreads, 0, stream>>>(
      static_cast<const Type*>(from), from_width, static_cast<Type*>(to), to_width, count, groups);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_convert(cudaStream_t stream, const float* from, Element element, void* to, std::int64_t count) {
  return with_element(element,
                      [&](auto type) { return convert<false>(stream, from, static_cast<decltype(type)*>(to), count); });
}

cudaError_t launch_to_floats(cudaStream_t stream, Element element, const void* from, float* to, bool accumulate,
                             std::int64_t count) {
  return with_element(element, [&](auto type) {
    const auto* values = static_cast<const decltype(type)*>(from);
    return accumulate ? convert<true>(stream, values, to, count) : convert<false>(stream, values, to, count);
  });
}

cudaError_t launch_copy_columns(cudaStream_t stream, Element element, const void* from, std::int64_t from_width,
                                void* to, std::int64_t to_width, std::int64_t rows, std::int64_t channels) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    constexpr int kWide = kPackOf<Type>;
    const bool packed = channels % kWide == 0 && from_width % kWide == 0 && to_width % kWide == 0 &&
                        reinterpret_cast<std::uintptr_t>(from) % 16 == 0 &&
                        reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
    return packed ? copy_columns<Type, kWide>(stream, from, from_width, to, to_width, rows, channels)
                  : copy_columns<Type, 1>(stream, from, from_width, to, to_width, rows, channels);
  });
}

}  // namespace tide::cuda
