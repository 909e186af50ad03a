// Optimizers with the semantics of PyTorch's, and the norm for clipping.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device_state.h"

namespace tide::cuda {

enum class UpdateRule { sgd, momentum, adam };

struct UpdateOptions {
  UpdateRule rule;
  bool nesterov, decoupled;  // of momentum and of adam
  double momentum, beta1, beta2, epsilon, weight_decay, clip_norm;
};

// One parameter: gradient, old values, new values. Old and new may be one.
struct UpdateArrays {
  const float *gradient, *weight, *first, *second;
  float *new_weight, *new_first, *new_second;
  float rate, decay;  // factors of the learning rate and of the weight decay
};
// norm: null without clipping.
[[nodiscard]] cudaError_t launch_update(cudaStream_t stream, const UpdateOptions& options, const DeviceState* state,
                                        const float* norm, const UpdateArrays& arrays, std::int64_t count);

// Several parameters at once, all of them with the launch: they fit the 4 KiB that one may have.
inline constexpr int kUpdatesPerLaunch = 56;
struct UpdateGroup {
  UpdateArrays arrays[kUpdatesPerLaunch];
  std::int32_t counts[kUpdatesPerLaunch];
  int size;
};
[[nodiscard]] cudaError_t launch_updates(cudaStream_t stream, const UpdateOptions& options, const DeviceState* state,
                                         const float* norm, const UpdateGroup& group);

// Sums of squares: some gradients at a time into partial sums, then all of those into `norm`.
inline constexpr int kGradientsPerLaunch = 48;
inline constexpr std::int64_t kSquaresPerPiece = 1 << 14;
struct Gradients {
  const float* values[kGradientsPerLaunch];
  std::int64_t counts[kGradientsPerLaunch];
  int first_piece[kGradientsPerLaunch + 1];  // within this launch
  int size;
};
[[nodiscard]] cudaError_t launch_squares(cudaStream_t stream, const Gradients& gradients, double* partial);
[[nodiscard]] cudaError_t launch_merge_squares(cudaStream_t stream, const double* partial, std::int64_t count,
                                               float* norm);

}  // namespace tide::cuda
