#include <type_traits>

#include "backend/cuda/launch_grid.cuh"
#include "backend/cuda/update.h"

namespace tide::cuda {
namespace {

// Rates of one update, in the precision of the weights.
struct Rates {
  float rate, clip, decay;                   // decay: added to the gradient
  float momentum, of_gradient, of_velocity;  // what the weight moves by
  float beta1, rest1, beta2, rest2, epsilon;
  float shrink;                 // adamw: factor of the weight
  float step, deviation_scale;  // adam: bias-corrected
};

// Made by one thread of each block: powers in double precision are slow.
__device__ Rates rates_of(const UpdateOptions& o, const DeviceState& state, const float* norm,
                          const UpdateArrays& arrays) {
  const double rate = state.learning_rate * arrays.rate, decay = o.weight_decay * arrays.decay;
  const auto count = static_cast<double>(state.update_count);
  Rates r{};
  r.rate = static_cast<float>(rate);
  r.clip = 1.0F;
  if (norm != nullptr) {
    const double clip = o.clip_norm / (sqrt(static_cast<double>(*norm)) + 1e-6);
    r.clip = clip > 1 ? 1.0F : static_cast<float>(clip);  // a NaN passes
  }
  r.decay = o.decoupled ? 0.0F : static_cast<float>(decay);
  r.momentum = static_cast<float>(o.momentum);
  r.of_gradient = o.nesterov ? 1.0F : 0.0F;
  r.of_velocity = o.nesterov ? r.momentum : 1.0F;
  if (o.rule != UpdateRule::adam) return r;
  r.beta1 = static_cast<float>(o.beta1);
  r.rest1 = static_cast<float>(1 - o.beta1);
  r.beta2 = static_cast<float>(o.beta2);
  r.rest2 = static_cast<float>(1 - o.beta2);
  r.epsilon = static_cast<float>(o.epsilon);
  r.shrink = o.decoupled ? static_cast<float>(1 - rate * decay) : 1.0F;
  r.step = static_cast<float>(rate / (1 - pow(o.beta1, count)));
  r.deviation_scale = static_cast<float>(1 / sqrt(1 - pow(o.beta2, count)));
  return r;
}

template <UpdateRule rule, int width>
__device__ void update_pack(const Rates& r, const UpdateArrays& a, std::int64_t at) {
  using Floats = Pack<width>;
  const Floats gradient = Floats::load(a.gradient + at);
  Floats weight = Floats::load(a.weight + at), first{}, second{};
  if constexpr (rule != UpdateRule::sgd) first = Floats::load(a.first + at);
  if constexpr (rule == UpdateRule::adam) second = Floats::load(a.second + at);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const float g = r.clip * gradient.v[k] + r.decay * weight.v[k];
    if constexpr (rule == UpdateRule::sgd) {
      weight.v[k] -= r.rate * g;
    } else if constexpr (rule == UpdateRule::momentum) {
      first.v[k] = r.momentum * first.v[k] + g;
      weight.v[k] -= r.rate * (r.of_gradient * g + r.of_velocity * first.v[k]);
    } else {
      first.v[k] = r.beta1 * first.v[k] + r.rest1 * g;
      second.v[k] = r.beta2 * second.v[k] + r.rest2 * g * g;
      weight.v[k] = r.shrink * weight.v[k] - r.step * first.v[k] / (sqrtf(second.v[k]) * r.deviation_scale + r.epsilon);
    }
  }
  weight.store(a.new_weight + at);
  if constexpr (rule != UpdateRule::sgd) first.store(a.new_first + at);
  if constexpr (rule == UpdateRule::adam) second.store(a.new_second + at);
}

// All of a parameter's elements, by the threads of gridDim.x blocks.
template <UpdateRule rule>
__device__ void update_all(const UpdateOptions& options, const DeviceState* state, const float* norm,
                           const UpdateArrays& arrays, std::int64_t count) {
  __shared__ Rates rates;
  if (threadIdx.x == 0) rates = rates_of(options, *state, norm, arrays);
  __syncthreads();
  const Rates r = rates;
  const std::int64_t packs = count / 4, stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = thread_index(); i < packs; i += stride) update_pack<rule, 4>(r, arrays, 4 * i);
  for (std::int64_t i = 4 * packs + thread_index(); i < count; i += stride) update_pack<rule, 1>(r, arrays, i);
}

template <UpdateRule rule>
__global__ void update_kernel(UpdateOptions options, const DeviceState* state, const float* norm, UpdateArrays arrays,
                              std::int64_t count) {
  update_all<rule>(options, state, norm, arrays, count);
}

// A row of blocks for each parameter.
template <UpdateRule rule>
__global__ void update_group_kernel(UpdateOptions options, const DeviceState* state, const float* norm,
                                    const __grid_constant__ UpdateGroup group) {
  const UpdateArrays arrays = group.arrays[blockIdx.y];
  const std::int64_t count = group.counts[blockIdx.y];
  if (static_cast<std::int64_t>(blockIdx.x) * kThreads * 4 >= count) return;
  update_all<rule>(options, state, norm, arrays, count);
}
static_assert(sizeof(UpdateOptions) + 2 * sizeof(void*) + sizeof(UpdateGroup) <= 4096);

// Calls launch(rule) with the rule as a constant.
template <typename Launch>
void with_rule(UpdateRule rule, Launch launch) {
  switch (rule) {
    case UpdateRule::sgd: return launch(std::integral_constant<UpdateRule, UpdateRule::sgd>{});
    case UpdateRule::momentum: return launch(std::integral_constant<UpdateRule, UpdateRule::momentum>{});
    case UpdateRule::adam: return launch(std::integral_constant<UpdateRule, UpdateRule::adam>{});
  }
}

// The total ends in thread 0.
__device__ double sum_of_block(double value) {
  __shared__ double shared[kThreads];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

__global__ void squares_kernel(Gradients gradients, double* partial) {
  const int piece = static_cast<int>(blockIdx.x);
  int tensor = 0;
  while (gradients.first_piece[tensor + 1] <= piece) ++tensor;
  const std::int64_t begin = (piece - gradients.first_piece[tensor]) * kSquaresPerPiece;
  const std::int64_t end = min(gradients.counts[tensor], begin + kSquaresPerPiece);
  const float* values = gradients.values[tensor];
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const auto value = static_cast<double>(values[i]);
    sum += value * value;
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) partial[piece] = sum;
}

__global__ void merge_squares_kernel(const double* partial, std::int64_t count, float* norm) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += partial[i];
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) *norm = static_cast<float>(sum);
}

}  // namespace

cudaError_t launch_update(cudaStream_t stream, const UpdateOptions& options, const DeviceState* state,
                          const float* norm, const UpdateArrays& arrays, std::int64_t count) {
  constexpr unsigned kMostBlocks = 2048;  // more would only make the rates more often
  const unsigned wanted = blocks_for(count / 4 + 4), blocks = wanted < kMostBlocks ? wanted : kMostBlocks;
  with_rule(options.rule, [&](auto rule) {
    update_kernel<rule><<<blocks, kThreads, 0, stream>>>(options, state, norm, arrays, count);
  });
  return cudaGetLastError();
}

cudaError_t launch_updates(cudaStream_t stream, const UpdateOptions& options, const DeviceState* state,
                           const float* norm, const UpdateGroup& group) {
  constexpr unsigned kMostBlocks = 64;
  std::int64_t largest = 0;
  for (int i = 0; i < group.size; ++i) largest = group.counts[i] > largest ? group.counts[i] : largest;
  const unsigned wanted = blocks_for(largest, kThreads * 4), blocks = wanted < kMostBlocks ? wanted : kMostBlocks;
  with_rule(options.rule, [&](auto rule) {
    update_group_kernel<rule>
        <<<dim3(blocks, static_cast<unsigned>(group.size)), kThreads, 0, stream>>>(options, state, norm, group);
  });
  return cudaGetLastError();
}

cudaError_t launch_squares(cudaStream_t stream, const Gradients& gradients, double* partial) {
  squares_kernel<<<static_cast<unsigned>(gradients.first_piece[gradients.size]), kThreads, 0, stream>>>(gradients,
                                                                                                        partial);
  return cudaGetLastError();
}

cudaError_t launch_merge_squares(cudaStream_t stream, const double* partial, std::int64_t count, float* norm) {
  merge_squares_kernel<<<1, kThreads, 0, stream>>>(partial, count, norm);
  return cudaGetLastError();
}

}  // namespace tide::cuda
