// Convolutions as plain sums: any window, any groups, no workspace, one order. For the shapes
// that the library has no such algorithm for; slow.
//
// A convolution relates a large side (x) to a small one (y); a transposed convolution is the
// same relation read the other way round. Weights are small channels x height x width x large
// channels of one group, and floats.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/element.h"

namespace tide::cuda {

struct DirectConvolution {
  std::int64_t batch;
  int large_channels, large_height, large_width;
  int small_channels, small_height, small_width;
  int groups, kernel_height, kernel_width, stride_height, stride_width;
  int pad_top, pad_left, dilation_height, dilation_width;
};

[[nodiscard]] cudaError_t launch_direct_to_small(cudaStream_t stream, const DirectConvolution& shape, Element element,
                                                 const void* large, const float* weights, void* small);
[[nodiscard]] cudaError_t launch_direct_to_large(cudaStream_t stream, const DirectConvolution& shape, Element element,
                                                 const void* small, const float* weights, void* large);
[[nodiscard]] cudaError_t launch_direct_to_weights(cudaStream_t stream, const DirectConvolution& shape, Element element,
                                                   const void* large, const void* small, float* weights,
                                                   bool accumulate);

}  // namespace tide::cuda
