// Functions of one value and their slopes, on the device.
#pragma once

#include "network/option_enums.h"

namespace tide::cuda {

struct FunctionNumbers {
  float alpha = 0, beta = 0;
  bool slope_of_result = false;  // what slopes are made from: results, or else what these were made of
};

// A NaN passes.
__device__ inline float clipped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
__device__ inline float sigmoid_of(float x) { return 1.0F / (1.0F + expf(-x)); }
__device__ inline float softplus_of(float x) { return x > 20.0F ? x : log1pf(expf(x)); }
__device__ inline float normal_share(float x) { return 0.5F * erfcf(-x * 0.70710678118654752F); }
inline constexpr float kGeluScale = 0.79788456080286536F;  // sqrt(2 / pi)
inline constexpr float kGeluCube = 0.044715F;
__device__ inline float gelu_tanh_of(float x) { return tanhf(kGeluScale * (x + kGeluCube * x * x * x)); }

template <ActivationFunction function>
__device__ inline float activated(float x, const FunctionNumbers& n) {
  using F = ActivationFunction;
  if constexpr (function == F::clip) return clipped(x, n.alpha, n.beta);
  if constexpr (function == F::leaky_relu) return x > 0.0F ? x : n.alpha * x;
  if constexpr (function == F::elu) return x > 0.0F ? x : n.alpha * expm1f(x);
  if constexpr (function == F::silu) return x * sigmoid_of(x);
  if constexpr (function == F::gelu) return x * normal_share(x);
  if constexpr (function == F::gelu_tanh) return 0.5F * x * (1.0F + gelu_tanh_of(x));
  if constexpr (function == F::hard_sigmoid) return clipped(n.alpha * x + n.beta, 0.0F, 1.0F);
  if constexpr (function == F::hard_swish) return x * clipped(x / 6.0F + 0.5F, 0.0F, 1.0F);
  if constexpr (function == F::mish) return x * tanhf(softplus_of(x));
  if constexpr (function == F::softplus) return n.alpha * x > n.beta ? x : log1pf(expf(n.alpha * x)) / n.alpha;
  if constexpr (function == F::affine) return n.alpha * x + n.beta;
  if constexpr (function == F::square) return x * x;
  if constexpr (function == F::exp) return expf(x);
  if constexpr (function == F::sqrt) return sqrtf(x);
  if constexpr (function == F::abs) return fabsf(x);
  return x;
}

template <ActivationFunction function>
__device__ inline float slope_at(float from, const FunctionNumbers& n) {
  using F = ActivationFunction;
  if constexpr (function == F::clip) return from > n.alpha && from < n.beta ? 1.0F : 0.0F;
  if constexpr (function == F::leaky_relu) return from > 0.0F ? 1.0F : n.alpha;
  if constexpr (function == F::elu)
    return from > 0.0F ? 1.0F : n.slope_of_result ? from + n.alpha : n.alpha * expf(from);
  if constexpr (function == F::silu) {
    const float s = sigmoid_of(from);
    return s * (1.0F + from * (1.0F - s));
  }
  if constexpr (function == F::gelu) return normal_share(from) + from * expf(-0.5F * from * from) * (0.5F * kGeluScale);
  if constexpr (function == F::gelu_tanh) {
    const float t = gelu_tanh_of(from);
    return 0.5F * (1.0F + t) + 0.5F * from * (1.0F - t * t) * kGeluScale * (1.0F + 3.0F * kGeluCube * from * from);
  }
  if constexpr (function == F::hard_sigmoid) return from > 0.0F && from < 1.0F ? n.alpha : 0.0F;
  if constexpr (function == F::hard_swish) return from <= -3.0F ? 0.0F : from < 3.0F ? from / 3.0F + 0.5F : 1.0F;
  if constexpr (function == F::mish) {
    const float t = tanhf(softplus_of(from));
    return t + from * (1.0F - t * t) * sigmoid_of(from);
  }
  if constexpr (function == F::softplus) return n.alpha * from > n.beta ? 1.0F : sigmoid_of(n.alpha * from);
  if constexpr (function == F::affine) return n.alpha;
  if constexpr (function == F::square) return 2.0F * from;
  if constexpr (function == F::exp) return from;
  if constexpr (function == F::sqrt) return 0.5F / from;
  if constexpr (function == F::abs) return from > 0.0F ? 1.0F : from < 0.0F ? -1.0F : 0.0F;
  return 1.0F;
}

// What a batch norm does to its result (step/fuse.h).
template <FusedFunction function>
__device__ inline float fused(float x, const FunctionNumbers& n) {
  if constexpr (function == FusedFunction::relu) return x <= 0.0F ? 0.0F : x;
  if constexpr (function == FusedFunction::clip) return activated<ActivationFunction::clip>(x, n);
  if constexpr (function == FusedFunction::silu) return activated<ActivationFunction::silu>(x, n);
  if constexpr (function == FusedFunction::hard_swish) return activated<ActivationFunction::hard_swish>(x, n);
  return x;
}

// `gradient` behind it; from: what it was made of, or of relu and clip its result.
template <FusedFunction function>
__device__ inline float through_fused(float gradient, float from, const FunctionNumbers& n) {
  if constexpr (function == FusedFunction::relu) return from > 0.0F ? gradient : 0.0F;
  if constexpr (function == FusedFunction::clip) return from > n.alpha && from < n.beta ? gradient : 0.0F;
  if constexpr (function == FusedFunction::silu) return gradient * slope_at<ActivationFunction::silu>(from, n);
  if constexpr (function == FusedFunction::hard_swish)
    return gradient * slope_at<ActivationFunction::hard_swish>(from, n);
  return gradient;
}

}  // namespace tide::cuda
