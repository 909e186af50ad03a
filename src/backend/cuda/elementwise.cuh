// Kernels that apply a function to each element, or to each pair of elements, of one size.
#pragma once

#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {

// Packs per thread: loaded together before the first is stored, so that loads overlap.
inline constexpr int kUnroll = 4;
inline constexpr std::int64_t kPerBlock = std::int64_t{kThreads} * kUnroll;

template <typename Type, typename Function>
__global__ void unary_kernel(const Type* x, Type* y, std::int64_t count, Function function) {
  constexpr int kWidth = kPackOf<Type>;
  const std::int64_t packs = count / kWidth;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kPerBlock + threadIdx.x;
  Raw<Type, kWidth> in[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) in[u] = Raw<Type, kWidth>::load(x + kWidth * i);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) {
      Pack<kWidth> value = Pack<kWidth>::of(in[u]);
      for (int k = 0; k < kWidth; ++k) value.v[k] = function(value.v[k]);
      value.store(y + kWidth * i);
    }
  const std::int64_t rest = kWidth * packs + first;
  if (first < count - kWidth * packs) put(y + rest, function(to_float(x[rest])));
}

template <typename Type, typename Function>
__global__ void binary_kernel(const Type* a, const Type* b, Type* y, std::int64_t count, Function function) {
  constexpr int kWidth = kPackOf<Type>;
  const std::int64_t packs = count / kWidth;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kPerBlock + threadIdx.x;
  Raw<Type, kWidth> left[kUnroll], right[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) {
      left[u] = Raw<Type, kWidth>::load(a + kWidth * i);
      right[u] = Raw<Type, kWidth>::load(b + kWidth * i);
    }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) {
      Pack<kWidth> value = Pack<kWidth>::of(left[u]);
      const Pack<kWidth> other = Pack<kWidth>::of(right[u]);
      for (int k = 0; k < kWidth; ++k) value.v[k] = function(value.v[k], other.v[k]);
      value.store(y + kWidth * i);
    }
  const std::int64_t rest = kWidth * packs + first;
  if (first < count - kWidth * packs) put(y + rest, function(to_float(a[rest]), to_float(b[rest])));
}

// Blocks of a kernel that takes kUnroll packs a thread and then what is left of a pack.
template <typename Type>
unsigned pack_blocks(std::int64_t count) {
  return blocks_for(count / kPackOf<Type> + kPackOf<Type>, kPerBlock);
}

template <typename Function>
cudaError_t unary(cudaStream_t stream, Element element, const void* x, void* y, std::int64_t count, Function function) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    unary_kernel<<<pack_blocks<Type>(count), kThreads, 0, stream>>>(static_cast<const Type*>(x), static_cast<Type*>(y),
                                                                    count, function);
    return cudaGetLastError();
  });
}

template <typename Function>
cudaError_t binary(cudaStream_t stream, Element element, const void* a, const void* b, void* y, std::int64_t count,
                   Function function) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    binary_kernel<<<pack_blocks<Type>(count), kThreads, 0, stream>>>(
        static_cast<const Type*>(a), static_cast<const Type*>(b), static_cast<Type*>(y), count, function);
    return cudaGetLastError();
  });
}

}  // namespace tide::cuda
