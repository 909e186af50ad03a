// Sums down the columns of NHWC matrices in a fixed order: gradients of biases, and batch
// normalization, which is two such sums and an elementwise pass.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tide::cuda {

struct RowsAndChannels {
  std::int64_t rows, channels;
};

// Scratch of the functions below.
[[nodiscard]] std::size_t column_sum_bytes(const RowsAndChannels& shape);
[[nodiscard]] std::size_t batch_norm_training_bytes(const RowsAndChannels& shape);
[[nodiscard]] std::size_t batch_norm_backward_bytes(const RowsAndChannels& shape);

// target = (or +=) the sums of the columns of x.
[[nodiscard]] cudaError_t launch_column_sums(cudaStream_t stream, const RowsAndChannels& shape, const float* x,
                                             float* target, bool accumulate, std::byte* workspace);

struct BatchNormStatistics {
  double epsilon, momentum;
  float *mean, *inverse_deviation;               // written
  const float *running_mean, *running_variance;  // as they were
  float *new_running_mean, *new_running_variance;
};
[[nodiscard]] cudaError_t launch_batch_norm_statistics(cudaStream_t stream, const RowsAndChannels& shape,
                                                       const float* x, const BatchNormStatistics& statistics,
                                                       std::byte* workspace);

// y = (x - mean) * (scale * inverse deviation) + shift, for training, replay and evaluation
// alike, so that they give the same bits. With `epsilon`, `spread` is a variance.
struct BatchNormApply {
  const float *x, *mean, *spread, *scale, *shift;
  float* y;
  bool is_variance;
  double epsilon;
};
[[nodiscard]] cudaError_t launch_batch_norm_apply(cudaStream_t stream, const RowsAndChannels& shape,
                                                  const BatchNormApply& apply);

struct BatchNormBackward {
  const float *x, *dy, *scale, *mean, *inverse_deviation;
  float *dx, *d_scale, *d_shift;  // null: not wanted; dx may be dy or x
  bool add_scale, add_shift;
};
[[nodiscard]] cudaError_t launch_batch_norm_backward(cudaStream_t stream, const RowsAndChannels& shape,
                                                     const BatchNormBackward& backward, std::byte* workspace);

}  // namespace tide::cuda
