// Pools over NHWC activations. Results and the order of sums are those of the cpu backend.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/element.h"

namespace tide::cuda {

// Along one axis; tap k of window o is at o * stride - before + k * dilation.
struct PoolAxis {
  int input, output, kernel, stride, before, after, dilation;
};
struct PoolShape {
  std::int64_t batch;
  int channels;
  PoolAxis rows, columns;
};

// `indices` are u8 or i32 (`wide`), or null.
[[nodiscard]] cudaError_t launch_max_pool(cudaStream_t stream, const PoolShape& shape, Element element, const void* x,
                                          void* y, void* indices, bool wide);
[[nodiscard]] cudaError_t launch_max_pool_backward(cudaStream_t stream, const PoolShape& shape, Element element,
                                                   const void* indices, bool wide, const void* dy, void* dx);
// Finds the maxima again.
[[nodiscard]] cudaError_t launch_max_pool_backward_from_input(cudaStream_t stream, const PoolShape& shape,
                                                              Element element, const void* x, const void* dy, void* dx);
[[nodiscard]] cudaError_t launch_average_pool(cudaStream_t stream, const PoolShape& shape, Element element,
                                              bool count_padding, const void* x, void* y);
[[nodiscard]] cudaError_t launch_average_pool_backward(cudaStream_t stream, const PoolShape& shape, Element element,
                                                       bool count_padding, const void* dy, void* dx);
// positions: of one sample.
[[nodiscard]] cudaError_t launch_global_average_pool(cudaStream_t stream, std::int64_t batch, std::int64_t positions,
                                                     int channels, Element element, const void* x, void* y);
[[nodiscard]] cudaError_t launch_global_average_pool_backward(cudaStream_t stream, std::int64_t batch,
                                                              std::int64_t positions, int channels, Element element,
                                                              const void* dy, void* dx);

}  // namespace tide::cuda
