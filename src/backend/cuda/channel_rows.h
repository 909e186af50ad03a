// Kernels that work on whole rows of channels: softmax with its loss, and local response
// normalization.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device_state.h"
#include "backend/cuda/element.h"

namespace tide::cuda {

struct LossShape {
  std::int64_t rows, positions, classes;  // positions: of one sample
  std::int64_t labels_per_sample, label_offset;
  double smoothing, weight;
  bool soft, counted;  // labels are probabilities; or end in what each of those that are classes counts for
};
[[nodiscard]] std::size_t loss_bytes(const LossShape& shape);
// y, the probabilities, are floats; y may be x where that is too.
[[nodiscard]] cudaError_t launch_loss(cudaStream_t stream, const LossShape& shape, Element element, const void* x,
                                      const std::int32_t* labels, float* y, float* metric, bool adds,
                                      std::byte* workspace);
// dx may be y where it is floats too.
[[nodiscard]] cudaError_t launch_loss_backward(cudaStream_t stream, const LossShape& shape, const DeviceState* state,
                                               const float* y, const std::int32_t* labels, Element element, void* dx);

struct LrnShape {
  std::int64_t rows;
  int channels, half;    // half: channels on either side
  float k, scale, beta;  // scale: alpha / size
};
// A row must fit in the memory of one block.
inline constexpr int kMostLrnChannels = 16384;
[[nodiscard]] cudaError_t launch_lrn(cudaStream_t stream, const LrnShape& shape, Element element, const void* x,
                                     void* y);
// dx may be dy.
[[nodiscard]] cudaError_t launch_lrn_backward(cudaStream_t stream, const LrnShape& shape, Element element,
                                              const void* x, const void* dy, void* dx);

}  // namespace tide::cuda
