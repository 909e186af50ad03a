// Sums down the columns of NHWC matrices in a fixed order: gradients of biases.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/element.h"

namespace tide::cuda {

struct RowsAndChannels {
  std::int64_t rows, channels;
};

// Scratch of the function below.
[[nodiscard]] std::size_t column_sum_bytes(const RowsAndChannels& shape, Element element);

// target = (or +=) the sums of the columns of x.
[[nodiscard]] cudaError_t launch_column_sums(cudaStream_t stream, const RowsAndChannels& shape, Element element,
                                             const void* x, float* target, bool accumulate, std::byte* workspace);

}  // namespace tide::cuda
