// Batch normalization over NHWC, with what is fused into it: y = function(normalized x + other).
#pragma once

#include "backend/cuda/column_sums.h"
#include "network/option_enums.h"

namespace tide::cuda {

// What is done to the result, and between which bounds a clip leaves it.
struct FusedStep {
  FusedFunction function = FusedFunction::none;
  float minimum = 0, maximum = 0;
};

// Scratch of the functions below.
[[nodiscard]] std::size_t batch_norm_training_bytes(const RowsAndChannels& shape, Element element);
[[nodiscard]] std::size_t batch_norm_backward_bytes(const RowsAndChannels& shape, Element element);

struct BatchNormStatistics {
  double epsilon, momentum;
  float *mean, *inverse_deviation;               // written; with rows_before, added to
  const float *running_mean, *running_variance;  // as they were; null, with the next two: they stay
  float *new_running_mean, *new_running_variance;
  std::int64_t rows_before = 0;  // whose statistics mean and inverse_deviation are already
};
[[nodiscard]] cudaError_t launch_batch_norm_statistics(cudaStream_t stream, const RowsAndChannels& shape,
                                                       Element element, const void* x,
                                                       const BatchNormStatistics& statistics, std::byte* workspace);

// Statistics that stay what they are, in the form that backward and replays read.
[[nodiscard]] cudaError_t launch_batch_norm_frozen(cudaStream_t stream, std::int64_t channels, double epsilon,
                                                   const float* running_mean, const float* running_variance,
                                                   float* mean, float* inverse_deviation);

// Where the samples are equal parts, each by itself, a part has a row of 2 * channels floats: of the forward pass the
// means and the squares around them; of the backward pass the sums for scale and for shift.
// Scratch: batch_norm_training_bytes().
[[nodiscard]] cudaError_t launch_batch_norm_moments(cudaStream_t stream, const RowsAndChannels& shape, Element element,
                                                    const void* x, float* moments, std::byte* workspace);

// What becomes of the rows of several parts, put together in one binary tree.
struct PartRows {
  std::int64_t parts, channels;
  std::int64_t rows;  // of x, in each part
};
// Scratch of the functions below.
[[nodiscard]] std::size_t join_statistics_bytes(const PartRows& shape);
[[nodiscard]] std::size_t join_sums_bytes(const PartRows& shape);
// Statistics of all parts; without rows_before.
[[nodiscard]] cudaError_t launch_join_statistics(cudaStream_t stream, const PartRows& shape, const float* moments,
                                                 const BatchNormStatistics& statistics, std::byte* workspace);
// d_scale and d_shift = (or +=) the sums over the parts.
struct PartSums {
  float *d_scale, *d_shift;
  bool add_scale, add_shift;
};
[[nodiscard]] cudaError_t launch_join_sums(cudaStream_t stream, const PartRows& shape, const float* moments,
                                           const PartSums& sums, std::byte* workspace);

// For training, replay and evaluation alike, so that they give the same bits. `spread` is an
// inverse deviation, or a variance.
struct BatchNormApply {
  const void *x, *other;  // other: may be null
  const float *mean, *spread, *scale, *shift;
  void* y;  // may be x or other
  FusedStep fused;
  bool is_variance;
  double epsilon;
};
[[nodiscard]] cudaError_t launch_batch_norm_apply(cudaStream_t stream, const RowsAndChannels& shape, Element element,
                                                  const BatchNormApply& apply);

// With g the sum of dy and second_dy behind the fused function (whose slope y tells, or else x with `shift`), dx
// is the gradient of x and other_dx is g. Null: not there, or not wanted. dx and other_dx may be
// any of y, dy and second_dy; without these but dy, dx may be x.
struct BatchNormBackward {
  const void *x, *y, *dy, *second_dy;
  const float *scale, *shift, *mean, *inverse_deviation;
  void *dx, *other_dx;
  float *d_scale, *d_shift;
  bool add_scale, add_shift;
  FusedStep fused = {};
  bool frozen = false;  // the statistics did not depend on x
  // Not null: the sums over all samples, of `all_rows`, which the first pass then need not make.
  const float *scale_sums = nullptr, *shift_sums = nullptr;
  std::int64_t all_rows = 0;
};
[[nodiscard]] cudaError_t launch_batch_norm_backward(cudaStream_t stream, const RowsAndChannels& shape, Element element,
                                                     const BatchNormBackward& backward, std::byte* workspace);

}  // namespace tide::cuda
