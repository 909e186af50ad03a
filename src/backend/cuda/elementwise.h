// Elementwise kernels over elements of either type. Addresses may be equal, but must not overlap
// otherwise. All launches in this folder only enqueue; they return cudaGetLastError().
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/device_state.h"
#include "backend/cuda/element.h"

namespace tide::cuda {

enum class Unary { relu, sigmoid, tanh };
enum class Binary { relu_backward, sigmoid_backward, tanh_backward, add, multiply };  // backward: (y, dy)

[[nodiscard]] cudaError_t launch_unary(cudaStream_t stream, Unary operation, Element element, const void* x, void* y,
                                       std::int64_t count);
[[nodiscard]] cudaError_t launch_binary(cudaStream_t stream, Binary operation, Element element, const void* a,
                                        const void* b, void* y, std::int64_t count);
// da = dy * b, db = dy * a; both results may take the place of any operand.
[[nodiscard]] cudaError_t launch_multiply_backward(cudaStream_t stream, Element element, const void* a, const void* b,
                                                   const void* dy, void* da, void* db, std::int64_t count);
// y = x[0] + x[1] + ... in order.
inline constexpr int kMostAddends = 16;
struct Addends {
  const void* x[kMostAddends];
  int count;
};
[[nodiscard]] cudaError_t launch_sum(cudaStream_t stream, const Addends& addends, Element element, void* y,
                                     std::int64_t count);
// y += bias in every row.
[[nodiscard]] cudaError_t launch_add_bias(cudaStream_t stream, Element element, void* y, const float* bias,
                                          std::int64_t rows, std::int64_t channels);

struct DropoutShape {
  std::int64_t batch, per_sample;
  std::uint32_t layer;
  float rate;
  std::int64_t first_sample = 0;  // within the step's
};
// Forward, and backward with dy for x: the mask comes from the counters of the step's state.
[[nodiscard]] cudaError_t launch_dropout(cudaStream_t stream, const DropoutShape& shape, const DeviceState* state,
                                         Element element, const void* x, void* y);

// Takes its argument with the launch, so that the next state can be made at once.
[[nodiscard]] cudaError_t launch_store_state(cudaStream_t stream, DeviceState* state, const DeviceState& value);

}  // namespace tide::cuda
