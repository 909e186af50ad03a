// Neighbouring elements that are loaded and stored at once. Arithmetic is in floats, whatever
// memory holds.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backend/cuda/element.h"

namespace tide::cuda {

using Bf16 = __nv_bfloat16;

// Calls function(float) or function(Bf16): the type of its argument is what matters.
template <typename Function>
auto with_element(Element element, Function function) {
  return element == Element::f32 ? function(float{}) : function(Bf16{});
}

// Elements in 16 bytes.
template <typename Type>
inline constexpr int kPackOf = 16 / static_cast<int>(sizeof(Type));

template <int bytes>
struct Words;
template <>
struct Words<2> {
  unsigned short u;
};
template <>
struct Words<4> {
  unsigned u;
};
template <>
struct Words<8> {
  uint2 u;
};
template <>
struct Words<16> {
  uint4 u;
};
template <>
struct Words<32> {
  uint4 u, second;
};

// As they are in memory: to be held in registers while further loads are under way.
template <typename Type, int width>
struct Raw {
  Words<static_cast<int>(sizeof(Type)) * width> words;
  __device__ static Raw load(const Type* from) { return *reinterpret_cast<const Raw*>(from); }
};

template <int width>
struct Pack {
  float v[static_cast<std::size_t>(width)];

  __device__ static Pack of(const Raw<float, width>& raw) {
    Pack pack;
    static_assert(sizeof pack == sizeof raw);
    memcpy(&pack, &raw, sizeof pack);
    return pack;
  }
  __device__ static Pack of(const Raw<Bf16, width>& raw) {
    Pack pack;
    if constexpr (width == 1) {
      pack.v[0] = __uint_as_float(static_cast<unsigned>(raw.words.u) << 16U);
    } else {
      unsigned pairs[width / 2];
      memcpy(pairs, &raw, sizeof pairs);
#pragma unroll
      for (int k = 0; k < width / 2; ++k) {
        pack.v[2 * k] = __uint_as_float(pairs[k] << 16U);
        pack.v[2 * k + 1] = __uint_as_float(pairs[k] & 0xFFFF0000U);
      }
    }
    return pack;
  }
  template <typename Type>
  __device__ static Pack load(const Type* from) {
    return of(Raw<Type, width>::load(from));
  }

  __device__ void store(float* to) const {
    Raw<float, width> raw;
    memcpy(&raw, v, sizeof raw);
    *reinterpret_cast<Raw<float, width>*>(to) = raw;
  }
  __device__ void store(Bf16* to) const {
    if constexpr (width == 1) {
      *to = __float2bfloat16_rn(v[0]);
    } else {
      __nv_bfloat162 pairs[width / 2];
#pragma unroll
      for (int k = 0; k < width / 2; ++k) pairs[k] = __floats2bfloat162_rn(v[2 * k], v[2 * k + 1]);
      Raw<Bf16, width> raw;
      memcpy(&raw, pairs, sizeof raw);
      *reinterpret_cast<Raw<Bf16, width>*>(to) = raw;
    }
  }
};

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(Bf16 value) { return __bfloat162float(value); }
__device__ inline void put(float* to, float value) { *to = value; }
__device__ inline void put(Bf16* to, float value) { *to = __float2bfloat16_rn(value); }

}  // namespace tide::cuda
