#include "backend/cuda/channel_rows.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kRowsPerBlock = kThreads / kWarp;  // a warp for each row

struct Metric {
  double loss, correct;
};

template <typename Value, typename Combine>
__device__ Value across_warp(Value value, Combine combine) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
  return value;
}
struct Plus {
  template <typename Value>
  __device__ Value operator()(Value a, Value b) const {
    return a + b;
  }
};

__device__ std::int64_t label_of(const LossShape& s, const std::int32_t* labels, std::int64_t row) {
  return labels[row / s.positions * s.labels_per_sample + s.label_offset + row % s.positions];
}

template <typename Type>
__global__ void loss_kernel(LossShape s, const Type* x, const std::int32_t* labels, float* y, Metric* partial) {
  __shared__ Metric metrics[kRowsPerBlock];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock + warp;
  Metric metric{};
  if (row < s.rows) {
    const Type* from = x + row * s.classes;
    float* to = y + row * s.classes;
    const std::int64_t label = label_of(s, labels, row);
    const bool counts = label >= 0 && label < s.classes;
    // The first maximum is the answer. A NaN is never larger, and ends in the sum below.
    float largest = -INFINITY;
    std::int64_t answer = s.classes;
    double sum = 0;
    for (std::int64_t c = lane; c < s.classes; c += kWarp) {
      const float value = to_float(from[c]);
      if (value > largest) {
        largest = value;
        answer = c;
      }
      sum += static_cast<double>(value);
    }
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFU, largest, distance);
      const std::int64_t other_answer = __shfl_xor_sync(0xFFFFFFFFU, answer, distance);
      if (other > largest || (other == largest && other_answer < answer)) {
        largest = other;
        answer = other_answer;
      }
    }
    sum = across_warp(sum, Plus{});
    const double of_label = counts ? static_cast<double>(to_float(from[label])) : 0;
    __syncwarp();
    double total = 0;
    for (std::int64_t c = lane; c < s.classes; c += kWarp) {
      const float e = expf(to_float(from[c]) - largest);
      to[c] = e;
      total += static_cast<double>(e);
    }
    total = across_warp(total, Plus{});
    const auto factor = static_cast<float>(1 / total);
    for (std::int64_t c = lane; c < s.classes; c += kWarp) to[c] *= factor;
    if (counts) {
      const double wanted = (1 - s.smoothing) * of_label + s.smoothing / static_cast<double>(s.classes) * sum;
      metric.loss = s.weight * (static_cast<double>(largest) + log(total) - wanted);
      metric.correct = answer == label ? 1 : 0;
    }
  }
  if (lane == 0) metrics[warp] = metric;
  __syncthreads();
  if (threadIdx.x != 0) return;
  Metric block{};
  for (const Metric& one : metrics) {
    block.loss += one.loss;
    block.correct += one.correct;
  }
  partial[blockIdx.x] = block;
}

__global__ void merge_metric_kernel(const Metric* partial, std::int64_t count, float* metric, bool adds) {
  __shared__ Metric shared[kThreads];
  Metric mine{};
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    mine.loss += partial[i].loss;
    mine.correct += partial[i].correct;
  }
  shared[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  Metric total{};
  for (const Metric& one : shared) {
    total.loss += one.loss;
    total.correct += one.correct;
  }
  metric[0] = static_cast<float>(total.loss) + (adds ? metric[0] : 0.0F);
  metric[1] = static_cast<float>(total.correct) + (adds ? metric[1] : 0.0F);
}

template <typename Type>
__global__ void loss_backward_kernel(LossShape s, const DeviceState* state, const float* y, const std::int32_t* labels,
                                     Type* dx) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock + warp;
  if (row >= s.rows) return;
  const std::int64_t label = label_of(s, labels, row);
  const bool counts = label >= 0 && label < s.classes && state->global_batch > 0;
  const auto factor =
      counts ? static_cast<float>(s.weight / static_cast<double>(state->global_batch * s.positions)) : 0.0F;
  const auto rest = static_cast<float>(s.smoothing / static_cast<double>(s.classes));
  const auto most = static_cast<float>(1 - s.smoothing);
  for (std::int64_t c = lane; c < s.classes; c += kWarp) {
    float value = factor * (y[row * s.classes + c] - rest);
    if (c == label) value -= factor * most;
    put(dx + row * s.classes + c, value);
  }
}

// d ^ -beta. The usual 3/4 needs two square roots only.
__device__ float negative_power(float d, float beta) {
  if (beta != 0.75F) return powf(d, -beta);
  const float root = sqrtf(d);
  return 1.0F / (root * sqrtf(root));
}

// `terms` has `half` zeros on either side of a row.
__device__ float window_sum(const LrnShape& s, const float* terms, int c) {
  float sum = terms[c];
  for (int j = 1; j <= 2 * s.half; ++j) sum += terms[c + j];
  return sum;
}

// Rows of one block lie one behind the other in `terms`, each with its zeros.
template <bool backward, typename Type>
__global__ void lrn_kernel(LrnShape s, int rows_per_block, const Type* x, const Type* dy, Type* target) {
  extern __shared__ float terms[];
  const int padded = s.channels + 2 * s.half, count = rows_per_block * s.channels;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * rows_per_block;
  for (int i = static_cast<int>(threadIdx.x); i < rows_per_block * padded; i += kThreads) {
    const int row = i / padded, c = i % padded - s.half;
    const bool inside = c >= 0 && c < s.channels && first + row < s.rows;
    const float value = inside ? to_float(x[(first + row) * s.channels + c]) : 0.0F;
    terms[i] = value * value;
  }
  __syncthreads();
  float* ratios = terms + rows_per_block * padded;  // of backward: dy x d^(-beta-1)
  if constexpr (backward) {
    for (int i = static_cast<int>(threadIdx.x); i < rows_per_block * padded; i += kThreads) {
      const int row = i / padded, c = i % padded - s.half;
      ratios[i] = 0.0F;
      if (c < 0 || c >= s.channels || first + row >= s.rows) continue;
      const std::int64_t at = (first + row) * s.channels + c;
      const float d = s.k + s.scale * window_sum(s, terms + row * padded, c);
      ratios[i] = to_float(dy[at]) * to_float(x[at]) * negative_power(d, s.beta) / d;
    }
    __syncthreads();
  }
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const int row = i / s.channels, c = i % s.channels;
    if (first + row >= s.rows) break;
    const std::int64_t at = first * s.channels + i;
    const float d = s.k + s.scale * window_sum(s, terms + row * padded, c);
    const float power = negative_power(d, s.beta);
    if constexpr (backward)
      put(target + at, to_float(dy[at]) * power -
                           2.0F * s.scale * s.beta * to_float(x[at]) * window_sum(s, ratios + row * padded, c));
    else
      put(target + at, to_float(x[at]) * power);
  }
}

template <bool backward, typename Type>
cudaError_t lrn(cudaStream_t stream, const LrnShape& s, const Type* x, const Type* dy, Type* target) {
  const int padded = s.channels + 2 * s.half;
  const int rows_per_block = padded >= 1024 ? 1 : 1024 / padded;
  const int bytes = rows_per_block * padded * static_cast<int>(sizeof(float)) * (backward ? 2 : 1);
  if (bytes > 48 * 1024) {
    const cudaError_t status =
        cudaFuncSetAttribute(lrn_kernel<backward, Type>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (status != cudaSuccess) return status;
  }
  lrn_kernel<backward><<<blocks_for(s.rows, rows_per_block), kThreads, static_cast<std::size_t>(bytes), stream>>>(
      s, rows_per_block, x, dy, target);
  return cudaGetLastError();
}

}  // namespace

std::size_t loss_bytes(const LossShape& s) { return blocks_for(s.rows, kRowsPerBlock) * sizeof(Metric); }

cudaError_t launch_loss(cudaStream_t stream, const LossShape& s, Element element, const void* x,
                        const std::int32_t* labels, float* y, float* metric, bool adds, std::byte* workspace) {
  const unsigned blocks = blocks_for(s.rows, kRowsPerBlock);
  auto* partial = reinterpret_cast<Metric*>(workspace);
  with_element(element, [&](auto type) {
    loss_kernel<<<blocks, kThreads, 0, stream>>>(s, static_cast<const decltype(type)*>(x), labels, y, partial);
  });
  merge_metric_kernel<<<1, kThreads, 0, stream>>>(partial, blocks, metric, adds);
  return cudaGetLastError();
}

cudaError_t launch_loss_backward(cudaStream_t stream, const LossShape& s, const DeviceState* state, const float* y,
                                 const std::int32_t* labels, Element element, void* dx) {
  return with_element(element, [&](auto type) {
    loss_backward_kernel<<<blocks_for(s.rows, kRowsPerBlock), kThreads, 0, stream>>>(s, state, y, labels,
                                                                                     static_cast<decltype(type)*>(dx));
    return cudaGetLastError();
  });
}

cudaError_t launch_lrn(cudaStream_t stream, const LrnShape& s, Element element, const void* x, void* y) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    return lrn<false, Type>(stream, s, static_cast<const Type*>(x), nullptr, static_cast<Type*>(y));
  });
}

cudaError_t launch_lrn_backward(cudaStream_t stream, const LrnShape& s, Element element, const void* x, const void* dy,
                                void* dx) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    return lrn<true, Type>(stream, s, static_cast<const Type*>(x), static_cast<const Type*>(dy),
                           static_cast<Type*>(dx));
  });
}

}  // namespace tide::cuda
