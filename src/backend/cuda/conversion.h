// Copies: between types, and of some of a matrix's columns.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/element.h"

namespace tide::cuda {

// to = from, rounded where it must be.
[[nodiscard]] cudaError_t launch_convert(cudaStream_t stream, const float* from, Element element, void* to,
                                         std::int64_t count);
// to = (or +=) from.
[[nodiscard]] cudaError_t launch_to_floats(cudaStream_t stream, Element element, const void* from, float* to,
                                           bool accumulate, std::int64_t count);

// Copies `channels` elements of every row between matrices of these row lengths.
[[nodiscard]] cudaError_t launch_copy_columns(cudaStream_t stream, Element element, const void* from,
                                              std::int64_t from_width, void* to, std::int64_t to_width,
                                              std::int64_t rows, std::int64_t channels);

}  // namespace tide::cuda
