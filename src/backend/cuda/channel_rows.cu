#include "backend/cuda/channel_rows.h"
#include "backend/cuda/launch_grid.cuh"
#include "backend/cuda/loss_metric.cuh"

namespace tide::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kRowsPerBlock = kThreads / kWarp;  // a warp for each row

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

// The first of the largest values. A NaN is never larger, and ends in the sums.
struct Largest {
  float value = -INFINITY;
  std::int64_t at;
  __device__ void take(float other, std::int64_t other_at) {
    if (other > value || (other == value && other_at < at)) {
      value = other;
      at = other_at;
    }
  }
  __device__ void across() {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFU, value, distance);
      const std::int64_t other_at = __shfl_xor_sync(0xFFFFFFFFU, at, distance);
      take(other, other_at);
    }
  }
};

// The labels of one row: a class, or the wanted probabilities of all.
struct RowLabels {
  std::int64_t label;
  const float* wanted;  // null: a class
  double share;         // how much the row counts
  __device__ static RowLabels of(const LossShape& s, const std::int32_t* labels, std::int64_t row) {
    const std::int64_t sample = row / s.positions, position = row - sample * s.positions;
    const std::int32_t* const own = labels + sample * s.labels_per_sample + s.label_offset;
    if (s.soft) return {-1, reinterpret_cast<const float*>(own) + position * s.classes, 1};
    const std::int64_t label = own[position];
    const bool counts = label >= 0 && label < s.classes;
    return {label, nullptr, !counts ? 0.0 : s.counted ? static_cast<double>(__int_as_float(own[s.positions])) : 1.0};
  }
};

// A warp's row. y may be x.
template <typename Type>
__device__ LossMetric loss_of_row(const LossShape& s, const Type* x, const RowLabels& labels, float* y, int lane) {
  Largest answer{-INFINITY, s.classes}, likeliest{-INFINITY, s.classes};
  double sum = 0, mean = 0, all = 0;  // of x, of x by wanted probabilities, of these
  for (std::int64_t c = lane; c < s.classes; c += kWarp) {
    const float value = to_float(x[c]);
    answer.take(value, c);
    sum += static_cast<double>(value);
    if (labels.wanted == nullptr) continue;
    const float wanted = labels.wanted[c];
    likeliest.take(wanted, c);
    all += static_cast<double>(wanted);
    mean += static_cast<double>(wanted) * static_cast<double>(value);
  }
  answer.across();
  sum = across_warp(sum, Plus{});
  if (labels.wanted != nullptr) {
    likeliest.across();
    mean = across_warp(mean, Plus{});
    all = across_warp(all, Plus{});
  } else if (labels.share > 0) {
    mean = static_cast<double>(to_float(x[labels.label]));
    all = 1;
    likeliest.at = labels.label;
  }
  __syncwarp();
  double total = 0;
  for (std::int64_t c = lane; c < s.classes; c += kWarp) {
    const float e = expf(to_float(x[c]) - answer.value);
    y[c] = e;
    total += static_cast<double>(e);
  }
  total = across_warp(total, Plus{});
  const auto factor = static_cast<float>(1 / total);
  for (std::int64_t c = lane; c < s.classes; c += kWarp) y[c] *= factor;
  if (labels.share == 0) return {0, 0};
  const double wanted = (1 - s.smoothing) * mean + s.smoothing / static_cast<double>(s.classes) * sum;
  const double weights = (1 - s.smoothing) * all + s.smoothing;
  return {s.weight * labels.share * (weights * (static_cast<double>(answer.value) + log(total)) - wanted),
          answer.at == likeliest.at ? 1.0 : 0.0};
}

template <typename Type>
__global__ void loss_kernel(LossShape s, const Type* x, const std::int32_t* labels, float* y, LossMetric* partial) {
  __shared__ LossMetric metrics[kRowsPerBlock];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock + warp;
  LossMetric metric{};
  if (row < s.rows)
    metric = loss_of_row(s, x + row * s.classes, RowLabels::of(s, labels, row), y + row * s.classes, lane);
  if (lane == 0) metrics[warp] = metric;
  __syncthreads();
  if (threadIdx.x != 0) return;
  LossMetric block{};
  for (const LossMetric& one : metrics) {
    block.loss += one.loss;
    block.correct += one.correct;
  }
  partial[blockIdx.x] = block;
}

template <typename Type>
__global__ void loss_backward_kernel(LossShape s, const DeviceState* state, const float* y, const std::int32_t* labels,
                                     Type* dx) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock + warp;
  if (row >= s.rows) return;
  const RowLabels own = RowLabels::of(s, labels, row);
  const auto factor = static_cast<float>(own.share * gradient_scale_of(*state, s.weight, s.positions));
  const auto rest = static_cast<float>(s.smoothing / static_cast<double>(s.classes));
  const auto most = static_cast<float>(1 - s.smoothing);
  for (std::int64_t c = lane; c < s.classes; c += kWarp) {
    float value = factor * (y[row * s.classes + c] - rest);
    if (own.wanted != nullptr) value -= factor * most * own.wanted[c];
    if (c == own.label) value -= factor * most;
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

std::size_t loss_bytes(const LossShape& s) { return blocks_for(s.rows, kRowsPerBlock) * sizeof(LossMetric); }

cudaError_t launch_loss(cudaStream_t stream, const LossShape& s, Element element, const void* x,
                        const std::int32_t* labels, float* y, float* metric, bool adds, std::byte* workspace) {
  const unsigned blocks = blocks_for(s.rows, kRowsPerBlock);
  auto* partial = reinterpret_cast<LossMetric*>(workspace);
  with_element(element, [&](auto type) {
    loss_kernel<<<blocks, kThreads, 0, stream>>>(s, static_cast<const decltype(type)*>(x), labels, y, partial);
  });
  return launch_merge_metric(stream, partial, blocks, metric, adds);
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
