#include "backend/cuda/elementwise.h"
#include "backend/cuda/launch_grid.cuh"
#include "base/random.h"

namespace tide::cuda {
namespace {

// Packs per thread: loaded together before the first is stored, so that loads overlap.
constexpr int kUnroll = 4;
constexpr std::int64_t kPerBlock = std::int64_t{kThreads} * kUnroll;

struct Relu {
  // A NaN passes, so that it is seen.
  __device__ float operator()(float x) const { return x <= 0.0F ? 0.0F : x; }
};
struct Sigmoid {
  __device__ float operator()(float x) const { return 1.0F / (1.0F + expf(-x)); }
};
struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct ReluBackward {
  __device__ float operator()(float y, float dy) const { return y > 0.0F ? dy : 0.0F; }
};
struct SigmoidBackward {
  __device__ float operator()(float y, float dy) const { return dy * y * (1.0F - y); }
};
struct TanhBackward {
  __device__ float operator()(float y, float dy) const { return dy * (1.0F - y * y); }
};
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Multiply {
  __device__ float operator()(float a, float b) const { return a * b; }
};

template <typename Function>
__global__ void unary_kernel(const float* x, float* y, std::int64_t count, Function function) {
  const std::int64_t packs = count / 4;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kPerBlock + threadIdx.x;
  Pack<4> in[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) in[u] = Pack<4>::load(x + 4 * i);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) {
      for (float& value : in[u].v) value = function(value);
      in[u].store(y + 4 * i);
    }
  const std::int64_t rest = 4 * packs + first;
  if (first < count - 4 * packs) y[rest] = function(x[rest]);
}

template <typename Function>
__global__ void binary_kernel(const float* a, const float* b, float* y, std::int64_t count, Function function) {
  const std::int64_t packs = count / 4;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kPerBlock + threadIdx.x;
  Pack<4> left[kUnroll], right[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) {
      left[u] = Pack<4>::load(a + 4 * i);
      right[u] = Pack<4>::load(b + 4 * i);
    }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (const std::int64_t i = first + u * kThreads; i < packs) {
      for (int k = 0; k < 4; ++k) left[u].v[k] = function(left[u].v[k], right[u].v[k]);
      left[u].store(y + 4 * i);
    }
  const std::int64_t rest = 4 * packs + first;
  if (first < count - 4 * packs) y[rest] = function(a[rest], b[rest]);
}

__global__ void multiply_backward_kernel(const float* a, const float* b, const float* dy, float* da, float* db,
                                         std::int64_t count) {
  const std::int64_t i = thread_index();
  if (i >= count) return;
  const float first = dy[i] * b[i], second = dy[i] * a[i];
  da[i] = first;
  db[i] = second;
}

__global__ void sum_kernel(Addends addends, float* y, std::int64_t count) {
  const std::int64_t i = thread_index();
  if (4 * i + 4 <= count) {
    Pack<4> sum = Pack<4>::load(addends.x[0] + 4 * i);
    for (int a = 1; a < addends.count; ++a) {
      const Pack<4> next = Pack<4>::load(addends.x[a] + 4 * i);
      for (int k = 0; k < 4; ++k) sum.v[k] += next.v[k];
    }
    sum.store(y + 4 * i);
    return;
  }
  for (std::int64_t j = 4 * i; j < count; ++j) {
    float sum = addends.x[0][j];
    for (int a = 1; a < addends.count; ++a) sum += addends.x[a][j];
    y[j] = sum;
  }
}

template <int width>
__global__ void add_bias_kernel(float* y, const float* bias, std::int64_t rows, ColumnGrid grid) {
  const int group = static_cast<int>(blockIdx.x) * grid.tx + static_cast<int>(threadIdx.x);
  if (group >= grid.groups) return;
  const Pack<width> shift = Pack<width>::load(bias + group * width);
  const std::int64_t channels = static_cast<std::int64_t>(grid.groups) * width;
  const std::int64_t first = blockIdx.y * grid.rows_per_part, end = min(rows, first + grid.rows_per_part);
#pragma unroll 4
  for (std::int64_t row = first + threadIdx.y; row < end; row += grid.ty) {
    float* at = y + row * channels + group * width;
    Pack<width> value = Pack<width>::load(at);
    for (int k = 0; k < width; ++k) value.v[k] += shift.v[k];
    value.store(at);
  }
}

template <int width>
__global__ void copy_columns_kernel(const float* from, std::int64_t from_width, float* to, std::int64_t to_width,
                                    std::int64_t count, std::int64_t groups) {
  const std::int64_t i = thread_index();
  if (i >= count) return;
  const std::int64_t row = i / groups, group = i % groups;
  Pack<width>::load(from + row * from_width + group * width).store(to + row * to_width + group * width);
}

// One thread for the four numbers of one block of the generator.
__global__ void dropout_kernel(DropoutShape shape, const DeviceState* state, std::int64_t blocks, const float* x,
                               float* y) {
  const std::int64_t i = thread_index();
  if (i >= shape.batch * blocks) return;
  const std::int64_t sample = i / blocks, block = i % blocks;
  const Random4 bits =
      random_block(state->seed, RandomUse::dropout, state->step, shape.layer,
                   static_cast<std::uint64_t>(state->first_sample + sample), static_cast<std::uint64_t>(block));
  const float scale = 1.0F / (1.0F - shape.rate);
  const std::int64_t first = sample * shape.per_sample + 4 * block;
  if (shape.per_sample % 4 == 0) {
    Pack<4> value = Pack<4>::load(x + first);
#pragma unroll
    for (int k = 0; k < 4; ++k) value.v[k] = to_unit(bits[k]) >= shape.rate ? value.v[k] * scale : 0.0F;
    value.store(y + first);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (4 * block + k < shape.per_sample) y[first + k] = to_unit(bits[k]) >= shape.rate ? x[first + k] * scale : 0.0F;
}

__global__ void store_state_kernel(DeviceState* state, DeviceState value) { *state = value; }

template <typename Function>
cudaError_t unary(cudaStream_t stream, const float* x, float* y, std::int64_t count, Function function) {
  unary_kernel<<<blocks_for(count / 4 + 4, kPerBlock), kThreads, 0, stream>>>(x, y, count, function);
  return cudaGetLastError();
}

template <typename Function>
cudaError_t binary(cudaStream_t stream, const float* a, const float* b, float* y, std::int64_t count,
                   Function function) {
  binary_kernel<<<blocks_for(count / 4 + 4, kPerBlock), kThreads, 0, stream>>>(a, b, y, count, function);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_unary(cudaStream_t stream, Unary operation, const float* x, float* y, std::int64_t count) {
  switch (operation) {
    case Unary::relu: return unary(stream, x, y, count, Relu{});
    case Unary::sigmoid: return unary(stream, x, y, count, Sigmoid{});
    case Unary::tanh: return unary(stream, x, y, count, Tanh{});
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_binary(cudaStream_t stream, Binary operation, const float* a, const float* b, float* y,
                          std::int64_t count) {
  switch (operation) {
    case Binary::relu_backward: return binary(stream, a, b, y, count, ReluBackward{});
    case Binary::sigmoid_backward: return binary(stream, a, b, y, count, SigmoidBackward{});
    case Binary::tanh_backward: return binary(stream, a, b, y, count, TanhBackward{});
    case Binary::add: return binary(stream, a, b, y, count, Add{});
    case Binary::multiply: return binary(stream, a, b, y, count, Multiply{});
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_multiply_backward(cudaStream_t stream, const float* a, const float* b, const float* dy, float* da,
                                     float* db, std::int64_t count) {
  multiply_backward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(a, b, dy, da, db, count);
  return cudaGetLastError();
}

cudaError_t launch_sum(cudaStream_t stream, const Addends& addends, float* y, std::int64_t count) {
  sum_kernel<<<blocks_for((count + 3) / 4), kThreads, 0, stream>>>(addends, y, count);
  return cudaGetLastError();
}

cudaError_t launch_add_bias(cudaStream_t stream, float* y, const float* bias, std::int64_t rows,
                            std::int64_t channels) {
  const ColumnGrid grid = ColumnGrid::of<float>(rows, channels, 8192, 65535);
  if (grid.width == 4)
    add_bias_kernel<4><<<grid.grid(), grid.block(), 0, stream>>>(y, bias, rows, grid);
  else
    add_bias_kernel<1><<<grid.grid(), grid.block(), 0, stream>>>(y, bias, rows, grid);
  return cudaGetLastError();
}

cudaError_t launch_copy_columns(cudaStream_t stream, const float* from, std::int64_t from_width, float* to,
                                std::int64_t to_width, std::int64_t rows, std::int64_t channels) {
  const bool packed = channels % 4 == 0 && from_width % 4 == 0 && to_width % 4 == 0 &&
                      reinterpret_cast<std::uintptr_t>(from) % 16 == 0 &&
                      reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
  const std::int64_t groups = packed ? channels / 4 : channels, count = rows * groups;
  if (packed)
    copy_columns_kernel<4><<<blocks_for(count), kThreads, 0, stream>>>(from, from_width, to, to_width, count, groups);
  else
    copy_columns_kernel<1><<<blocks_for(count), kThreads, 0, stream>>>(from, from_width, to, to_width, count, groups);
  return cudaGetLastError();
}

cudaError_t launch_dropout(cudaStream_t stream, const DropoutShape& shape, const DeviceState* state, const float* x,
                           float* y) {
  const std::int64_t blocks = (shape.per_sample + 3) / 4;
  dropout_kernel<<<blocks_for(shape.batch * blocks), kThreads, 0, stream>>>(shape, state, blocks, x, y);
  return cudaGetLastError();
}

cudaError_t launch_store_state(cudaStream_t stream, DeviceState* state, const DeviceState& value) {
  store_state_kernel<<<1, 1, 0, stream>>>(state, value);
  return cudaGetLastError();
}

}  // namespace tide::cuda
