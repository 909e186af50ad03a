#include "backend/cuda/direct_convolution.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {
namespace {

__device__ std::int64_t large_at(const DirectConvolution& s, std::int64_t n, int h, int w) {
  return ((n * s.large_height + h) * s.large_width + w) * s.large_channels;
}
__device__ std::int64_t small_at(const DirectConvolution& s, std::int64_t n, int h, int w) {
  return ((n * s.small_height + h) * s.small_width + w) * s.small_channels;
}

template <typename Type>
__global__ void to_small_kernel(DirectConvolution s, const Type* large, const float* weights, Type* small) {
  const std::int64_t i = thread_index();
  if (i >= s.batch * s.small_height * s.small_width * s.small_channels) return;
  const int channel = static_cast<int>(i % s.small_channels);
  std::int64_t place = i / s.small_channels;
  const int w = static_cast<int>(place % s.small_width);
  place /= s.small_width;
  const int h = static_cast<int>(place % s.small_height);
  const std::int64_t n = place / s.small_height;
  const int per_group = s.large_channels / s.groups, group = channel / (s.small_channels / s.groups);
  float sum = 0;
  for (int kh = 0; kh < s.kernel_height; ++kh)
    for (int kw = 0; kw < s.kernel_width; ++kw) {
      const int y = h * s.stride_height - s.pad_top + kh * s.dilation_height;
      const int x = w * s.stride_width - s.pad_left + kw * s.dilation_width;
      if (y < 0 || y >= s.large_height || x < 0 || x >= s.large_width) continue;
      const Type* from = large + large_at(s, n, y, x) + group * per_group;
      const float* weight =
          weights + ((static_cast<std::int64_t>(channel) * s.kernel_height + kh) * s.kernel_width + kw) * per_group;
      for (int l = 0; l < per_group; ++l) sum += to_float(from[l]) * weight[l];
    }
  put(small + i, sum);
}

template <typename Type>
__global__ void to_large_kernel(DirectConvolution s, const Type* small, const float* weights, Type* large) {
  const std::int64_t i = thread_index();
  if (i >= s.batch * s.large_height * s.large_width * s.large_channels) return;
  const int channel = static_cast<int>(i % s.large_channels);
  std::int64_t place = i / s.large_channels;
  const int w = static_cast<int>(place % s.large_width);
  place /= s.large_width;
  const int h = static_cast<int>(place % s.large_height);
  const std::int64_t n = place / s.large_height;
  const int per_group = s.large_channels / s.groups, small_per_group = s.small_channels / s.groups;
  const int group = channel / per_group, l = channel % per_group;
  float sum = 0;
  for (int kh = 0; kh < s.kernel_height; ++kh) {
    const int y = h + s.pad_top - kh * s.dilation_height;
    if (y < 0 || y % s.stride_height != 0 || y / s.stride_height >= s.small_height) continue;
    for (int kw = 0; kw < s.kernel_width; ++kw) {
      const int x = w + s.pad_left - kw * s.dilation_width;
      if (x < 0 || x % s.stride_width != 0 || x / s.stride_width >= s.small_width) continue;
      const Type* from = small + small_at(s, n, y / s.stride_height, x / s.stride_width);
      for (int k = group * small_per_group; k < (group + 1) * small_per_group; ++k)
        sum += to_float(from[k]) *
               weights[((static_cast<std::int64_t>(k) * s.kernel_height + kh) * s.kernel_width + kw) * per_group + l];
    }
  }
  put(large + i, sum);
}

// A block per weight; its threads share the positions.
template <typename Type>
__global__ void to_weights_kernel(DirectConvolution s, const Type* large, const Type* small, float* weights,
                                  bool accumulate) {
  __shared__ float shared[kThreads];
  const int per_group = s.large_channels / s.groups;
  std::int64_t rest = blockIdx.x;
  const int l = static_cast<int>(rest % per_group);
  rest /= per_group;
  const int kw = static_cast<int>(rest % s.kernel_width);
  rest /= s.kernel_width;
  const int kh = static_cast<int>(rest % s.kernel_height), k = static_cast<int>(rest / s.kernel_height);
  const int channel = k / (s.small_channels / s.groups) * per_group + l;
  float sum = 0;
  const std::int64_t positions = s.batch * s.small_height * s.small_width;
  for (std::int64_t i = threadIdx.x; i < positions; i += kThreads) {
    const int w = static_cast<int>(i % s.small_width), h = static_cast<int>(i / s.small_width % s.small_height);
    const int y = h * s.stride_height - s.pad_top + kh * s.dilation_height;
    const int x = w * s.stride_width - s.pad_left + kw * s.dilation_width;
    if (y < 0 || y >= s.large_height || x < 0 || x >= s.large_width) continue;
    const std::int64_t n = i / s.small_width / s.small_height;
    sum += to_float(large[large_at(s, n, y, x) + channel]) * to_float(small[i * s.small_channels + k]);
  }
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) weights[blockIdx.x] = accumulate ? weights[blockIdx.x] + shared[0] : shared[0];
}

}  // namespace

cudaError_t launch_direct_to_small(cudaStream_t stream, const DirectConvolution& s, Element element, const void* large,
                                   const float* weights, void* small) {
  const std::int64_t count = s.batch * s.small_height * s.small_width * s.small_channels;
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    to_small_kernel<<<blocks_for(count), kThreads, 0, stream>>>(s, static_cast<const Type*>(large), weights,
                                                                static_cast<Type*>(small));
    return cudaGetLastError();
  });
}

cudaError_t launch_direct_to_large(cudaStream_t stream, const DirectConvolution& s, Element element, const void* small,
                                   const float* weights, void* large) {
  const std::int64_t count = s.batch * s.large_height * s.large_width * s.large_channels;
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    to_large_kernel<<<blocks_for(count), kThreads, 0, stream>>>(s, static_cast<const Type*>(small), weights,
                                                                static_cast<Type*>(large));
    return cudaGetLastError();
  });
}

cudaError_t launch_direct_to_weights(cudaStream_t stream, const DirectConvolution& s, Element element,
                                     const void* large, const void* small, float* weights, bool accumulate) {
  const std::int64_t count =
      std::int64_t{s.small_channels} * s.kernel_height * s.kernel_width * (s.large_channels / s.groups);
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    to_weights_kernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(
        s, static_cast<const Type*>(large), static_cast<const Type*>(small), weights, accumulate);
    return cudaGetLastError();
  });
}

}  // namespace tide::cuda
