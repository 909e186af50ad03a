// Depthwise convolutions, one channel to one channel, as fast as memory is: squares of 3 or 5, strides of 1 or 2.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "backend/cuda/direct_convolution.h"

namespace tide::cuda {

// Whether the functions below take it.
[[nodiscard]] bool is_fast_depthwise(const DirectConvolution& shape, Element element);
// Scratch of launch_depthwise_to_weights().
[[nodiscard]] std::size_t depthwise_weights_bytes(const DirectConvolution& shape, Element element);

[[nodiscard]] cudaError_t launch_depthwise_to_small(cudaStream_t stream, const DirectConvolution& shape,
                                                    Element element, const void* large, const float* weights,
                                                    void* small);
[[nodiscard]] cudaError_t launch_depthwise_to_large(cudaStream_t stream, const DirectConvolution& shape,
                                                    Element element, const void* small, const float* weights,
                                                    void* large);
[[nodiscard]] cudaError_t launch_depthwise_to_weights(cudaStream_t stream, const DirectConvolution& shape,
                                                      Element element, const void* large, const void* small,
                                                      float* weights, bool accumulate, std::byte* workspace);

}  // namespace tide::cuda
