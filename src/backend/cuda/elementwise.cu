#include "backend/cuda/elementwise.cuh"
#include "backend/cuda/elementwise.h"
#include "base/random.h"

namespace tide::cuda {
namespace {

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

template <typename Type>
__global__ void multiply_backward_kernel(const Type* a, const Type* b, const Type* dy, Type* da, Type* db,
                                         std::int64_t count) {
  const std::int64_t i = thread_index();
  if (i >= count) return;
  const float gradient = to_float(dy[i]), first = gradient * to_float(b[i]), second = gradient * to_float(a[i]);
  put(da + i, first);
  put(db + i, second);
}

template <typename Type>
__global__ void sum_kernel(Addends addends, Type* y, std::int64_t count) {
  constexpr int kWidth = kPackOf<Type>;
  const auto addend = [&](int a) { return static_cast<const Type*>(addends.x[a]); };
  const std::int64_t i = thread_index();
  if (kWidth * i + kWidth <= count) {
    Pack<kWidth> sum = Pack<kWidth>::load(addend(0) + kWidth * i);
    for (int a = 1; a < addends.count; ++a) {
      const Pack<kWidth> next = Pack<kWidth>::load(addend(a) + kWidth * i);
      for (int k = 0; k < kWidth; ++k) sum.v[k] += next.v[k];
    }
    sum.store(y + kWidth * i);
    return;
  }
  for (std::int64_t j = kWidth * i; j < count; ++j) {
    float sum = to_float(addend(0)[j]);
    for (int a = 1; a < addends.count; ++a) sum += to_float(addend(a)[j]);
    put(y + j, sum);
  }
}

template <typename Type, int width>
__global__ void add_bias_kernel(Type* y, const float* bias, std::int64_t rows, ColumnGrid grid) {
  const int group = static_cast<int>(blockIdx.x) * grid.tx + static_cast<int>(threadIdx.x);
  if (group >= grid.groups) return;
  const Pack<width> shift = Pack<width>::load(bias + group * width);
  const std::int64_t channels = static_cast<std::int64_t>(grid.groups) * width;
  const std::int64_t first = blockIdx.y * grid.rows_per_part, end = min(rows, first + grid.rows_per_part);
  for (std::int64_t row = first + threadIdx.y; row < end; row += kUnroll * grid.ty) {
    Type* at = y + row * channels + group * width;
    Raw<Type, width> in[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (row + u * grid.ty < end) in[u] = Raw<Type, width>::load(at + u * grid.ty * channels);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (row + u * grid.ty < end) {
        Pack<width> value = Pack<width>::of(in[u]);
        for (int k = 0; k < width; ++k) value.v[k] += shift.v[k];
        value.store(at + u * grid.ty * channels);
      }
  }
}

// One thread for the four numbers of one block of the generator.
template <typename Type>
__global__ void dropout_kernel(DropoutShape shape, const DeviceState* state, std::int64_t blocks, const Type* x,
                               Type* y) {
  const std::int64_t i = thread_index();
  if (i >= shape.batch * blocks) return;
  const std::int64_t sample = i / blocks, block = i % blocks;
  const Random4 bits = random_block(state->seed, RandomUse::dropout, state->step, shape.layer,
                                    static_cast<std::uint64_t>(state->first_sample + shape.first_sample + sample),
                                    static_cast<std::uint64_t>(block));
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
    if (4 * block + k < shape.per_sample)
      put(y + first + k, to_unit(bits[k]) >= shape.rate ? to_float(x[first + k]) * scale : 0.0F);
}

__global__ void store_state_kernel(DeviceState* state, DeviceState value) { *state = value; }

}  // namespace

cudaError_t launch_unary(cudaStream_t stream, Unary operation, Element element, const void* x, void* y,
                         std::int64_t count) {
  switch (operation) {
    case Unary::relu: return unary(stream, element, x, y, count, Relu{});
    case Unary::sigmoid: return unary(stream, element, x, y, count, Sigmoid{});
    case Unary::tanh: return unary(stream, element, x, y, count, Tanh{});
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_binary(cudaStream_t stream, Binary operation, Element element, const void* a, const void* b, void* y,
                          std::int64_t count) {
  switch (operation) {
    case Binary::relu_backward: return binary(stream, element, a, b, y, count, ReluBackward{});
    case Binary::sigmoid_backward: return binary(stream, element, a, b, y, count, SigmoidBackward{});
    case Binary::tanh_backward: return binary(stream, element, a, b, y, count, TanhBackward{});
    case Binary::add: return binary(stream, element, a, b, y, count, Add{});
    case Binary::multiply: return binary(stream, element, a, b, y, count, Multiply{});
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_multiply_backward(cudaStream_t stream, Element element, const void* a, const void* b, const void* dy,
                                     void* da, void* db, std::int64_t count) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    multiply_backward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(
        static_cast<const Type*>(a), static_cast<const Type*>(b), static_cast<const Type*>(dy), static_cast<Type*>(da),
        static_cast<Type*>(db), count);
    return cudaGetLastError();
  });
}

cudaError_t launch_sum(cudaStream_t stream, const Addends& addends, Element element, void* y, std::int64_t count) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    const std::int64_t packs = (count + kPackOf<Type> - 1) / kPackOf<Type>;
    sum_kernel<<<blocks_for(packs), kThreads, 0, stream>>>(addends, static_cast<Type*>(y), count);
    return cudaGetLastError();
  });
}

cudaError_t launch_add_bias(cudaStream_t stream, Element element, void* y, const float* bias, std::int64_t rows,
                            std::int64_t channels) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    const ColumnGrid grid = ColumnGrid::of<Type>(rows, channels, 8192, 65535);
    auto* values = static_cast<Type*>(y);
    if (grid.width > 1)
      add_bias_kernel<Type, kPackOf<Type>><<<grid.grid(), grid.block(), 0, stream>>>(values, bias, rows, grid);
    else
      add_bias_kernel<Type, 1><<<grid.grid(), grid.block(), 0, stream>>>(values, bias, rows, grid);
    return cudaGetLastError();
  });
}

cudaError_t launch_dropout(cudaStream_t stream, const DropoutShape& shape, const DeviceState* state, Element element,
                           const void* x, void* y) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    const std::int64_t blocks = (shape.per_sample + 3) / 4;
    dropout_kernel<<<blocks_for(shape.batch * blocks), kThreads, 0, stream>>>(
        shape, state, blocks, static_cast<const Type*>(x), static_cast<Type*>(y));
    return cudaGetLastError();
  });
}

cudaError_t launch_store_state(cudaStream_t stream, DeviceState* state, const DeviceState& value) {
  store_state_kernel<<<1, 1, 0, stream>>>(state, value);
  return cudaGetLastError();
}

}  // namespace tide::cuda
