// Functions of single elements beyond relu, sigmoid and tanh. Backward has their slope from x, from y, or from neither.
#include "backend/cpu/functions.h"

#include <cmath>

#include "backend/cpu/clones.h"
#include "backend/cpu/exponential.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"
#include "backend/cpu/streaming.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

// A NaN passes.
TIDE_INLINE float clipped(float x, float low, float high) {
  const float above = x < low ? low : x;
  return above > high ? high : above;
}

TIDE_INLINE float normal_share(float x) { return 0.5F * std::erfc(-x * 0.70710678F); }
TIDE_INLINE float gelu_argument(float x) { return 0.79788456F * (x + 0.044715F * x * x * x); }
// tanh(log(1 + e^x)) without the logarithm.
TIDE_INLINE float tanh_of_softplus(float x) {
  const float e = exponential(x > 20.0F ? 20.0F : x), n = e * (e + 2.0F);
  return n / (n + 2.0F);
}
TIDE_INLINE float silu_slope(float x) {
  const float s = sigmoid(x);
  return s * (1.0F + x * (1.0F - s));
}
TIDE_INLINE float hard_swish_slope(float x) { return x <= -3.0F ? 0.0F : x < 3.0F ? x * (1.0F / 3) + 0.5F : 1.0F; }
TIDE_INLINE float gelu_tanh_slope(float x) {
  const float t = hyperbolic_tangent(gelu_argument(x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * 0.79788456F * (1.0F + 0.134145F * x * x);
}
TIDE_INLINE float mish_slope(float x) {
  const float t = tanh_of_softplus(x);
  return t + x * (1.0F - t * t) * sigmoid(x);
}

using Forward = void (*)(const float* x, float* y, Index count, float alpha, float beta);
// `from` is x or y, whichever the slope is made from; null for neither.
using Backward = void (*)(const float* from, const float* dy, float* dx, Index count, float alpha, float beta);

#define TIDE_FORWARD(name, value)                                                                          \
  TIDE_CLONES void name##_forward(const float* from, float* to, Index count, [[maybe_unused]] float alpha, \
                                  [[maybe_unused]] float beta) {                                           \
    _Pragma("omp simd") for (Index i = 0; i < count; ++i) {                                                \
      const float x = from[i];                                                                             \
      to[i] = value;                                                                                       \
    }                                                                                                      \
  }
#define TIDE_BACKWARD(name, slope)                                                              \
  TIDE_CLONES void name##_backward(const float* from, const float* dy, float* dx, Index count,  \
                                   [[maybe_unused]] float alpha, [[maybe_unused]] float beta) { \
    _Pragma("omp simd") for (Index i = 0; i < count; ++i) {                                     \
      const float v = from[i];                                                                  \
      dx[i] = dy[i] * (slope);                                                                  \
    }                                                                                           \
  }

TIDE_FORWARD(clip, clipped(x, alpha, beta))
TIDE_BACKWARD(clip, v > alpha && v < beta ? 1.0F : 0.0F)
TIDE_FORWARD(leaky_relu, x > 0.0F ? x : alpha * x)
TIDE_BACKWARD(leaky_relu, v > 0.0F ? 1.0F : alpha)
TIDE_FORWARD(elu, x > 0.0F ? x : alpha * std::expm1(x))
TIDE_BACKWARD(elu, v > 0.0F ? 1.0F : v + alpha)
TIDE_BACKWARD(elu_of_input, v > 0.0F ? 1.0F : alpha * std::exp(v))
TIDE_FORWARD(silu, x* sigmoid(x))
TIDE_BACKWARD(silu, silu_slope(v))
TIDE_FORWARD(gelu, x* normal_share(x))
TIDE_BACKWARD(gelu, normal_share(v) + v * 0.39894228F * exponential(-0.5F * v * v))
TIDE_FORWARD(gelu_tanh, 0.5F * x * (1.0F + hyperbolic_tangent(gelu_argument(x))))
TIDE_BACKWARD(gelu_tanh, gelu_tanh_slope(v))
TIDE_FORWARD(hard_sigmoid, clipped(alpha* x + beta, 0.0F, 1.0F))
TIDE_BACKWARD(hard_sigmoid, v > 0.0F && v < 1.0F ? alpha : 0.0F)
TIDE_FORWARD(hard_swish, x* clipped(x*(1.0F / 6) + 0.5F, 0.0F, 1.0F))
TIDE_BACKWARD(hard_swish, hard_swish_slope(v))
TIDE_FORWARD(mish, x* tanh_of_softplus(x))
TIDE_BACKWARD(mish, mish_slope(v))
TIDE_FORWARD(softplus, alpha* x > beta ? x : std::log1p(std::exp(alpha * x)) / alpha)
TIDE_BACKWARD(softplus, alpha* v > beta ? 1.0F : sigmoid(alpha * v))
TIDE_FORWARD(affine, alpha* x + beta)
TIDE_FORWARD(square, x* x)
TIDE_BACKWARD(square, 2.0F * v)
TIDE_FORWARD(exp, std::exp(x))
TIDE_BACKWARD(exp, v)
TIDE_FORWARD(sqrt, std::sqrt(x))
TIDE_BACKWARD(sqrt, 0.5F / v)
TIDE_FORWARD(abs, std::abs(x))
TIDE_BACKWARD(abs, v > 0.0F ? 1.0F : v < 0.0F ? -1.0F : 0.0F)
TIDE_BACKWARD(relu_gate, v > 0.0F ? 1.0F : 0.0F)
#undef TIDE_FORWARD
#undef TIDE_BACKWARD

TIDE_CLONES void affine_backward(const float* /*from*/, const float* dy, float* dx, Index count, float alpha,
                                 float /*beta*/) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) dx[i] = dy[i] * alpha;
}

struct Pair {
  Forward forward;
  Backward backward;
};

Pair functions_of(const ActivationOptions& options) {
  switch (options.function) {
    case ActivationFunction::clip: return {clip_forward, clip_backward};
    case ActivationFunction::leaky_relu: return {leaky_relu_forward, leaky_relu_backward};
    case ActivationFunction::elu: return {elu_forward, options.alpha > 0 ? elu_backward : elu_of_input_backward};
    case ActivationFunction::silu: return {silu_forward, silu_backward};
    case ActivationFunction::gelu: return {gelu_forward, gelu_backward};
    case ActivationFunction::gelu_tanh: return {gelu_tanh_forward, gelu_tanh_backward};
    case ActivationFunction::hard_sigmoid: return {hard_sigmoid_forward, hard_sigmoid_backward};
    case ActivationFunction::hard_swish: return {hard_swish_forward, hard_swish_backward};
    case ActivationFunction::mish: return {mish_forward, mish_backward};
    case ActivationFunction::softplus: return {softplus_forward, softplus_backward};
    case ActivationFunction::affine: return {affine_forward, affine_backward};
    case ActivationFunction::square: return {square_forward, square_backward};
    case ActivationFunction::exp: return {exp_forward, exp_backward};
    case ActivationFunction::sqrt: return {sqrt_forward, sqrt_backward};
    case ActivationFunction::abs: return {abs_forward, abs_backward};
  }
  throw Error("the cpu backend has no such function");
}

}  // namespace

Recipe activation_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<ActivationOptions>();
  const Pair functions = functions_of(options);
  const auto alpha = static_cast<float>(options.alpha), beta = static_cast<float>(options.beta);
  const int threads = threads_of(context);
  const Index count = view.input().elements();
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y);
    return recipe([=](const Launch& launch) {
      const auto* from = input_of<float>(launch, x);
      auto* to = output_of<float>(launch, y);
      const bool streamed = count >= kStreamedFloats && to != from;
      parallel_ranges(threads, count, kElementGrain, [&](Index begin, Index end) {
        write_rows(to, begin, end, 1, streamed,
                   [&](Index i, Index size, float* target) { functions.forward(from + i, target, size, alpha, beta); });
      });
    });
  }
  const auto x = view.find_read(Role::x), y = view.find_read(Role::y);
  const std::size_t dy = view.read(Role::dy), dx = view.written(Role::dx);
  return recipe([=](const Launch& launch) {
    const auto* gradient = input_of<float>(launch, dy);
    const float* from = x ? input_of<float>(launch, *x) : y ? input_of<float>(launch, *y) : gradient;
    auto* to = output_of<float>(launch, dx);
    parallel_ranges(threads, count, kElementGrain, [&](Index begin, Index end) {
      functions.backward(from + begin, gradient + begin, to + begin, end - begin, alpha, beta);
    });
  });
}

void apply_fused(const BatchNormOptions& options, float* values, std::int64_t count) {
  const auto low = static_cast<float>(options.fused_minimum), high = static_cast<float>(options.fused_maximum);
  switch (options.fused) {
    case FusedFunction::clip: return clip_forward(values, values, count, low, high);
    case FusedFunction::silu: return silu_forward(values, values, count, 0, 0);
    case FusedFunction::hard_swish: return hard_swish_forward(values, values, count, 0, 0);
    case FusedFunction::none:
    case FusedFunction::relu: return;  // batch_norm_rows.cpp does these itself
  }
}

void multiply_by_fused_slope(const BatchNormOptions& options, const float* from, float* gradient, std::int64_t count) {
  const auto low = static_cast<float>(options.fused_minimum), high = static_cast<float>(options.fused_maximum);
  switch (options.fused) {
    case FusedFunction::clip: return clip_backward(from, gradient, gradient, count, low, high);
    case FusedFunction::silu: return silu_backward(from, gradient, gradient, count, 0, 0);
    case FusedFunction::hard_swish: return hard_swish_backward(from, gradient, gradient, count, 0, 0);
    case FusedFunction::relu: return relu_gate_backward(from, gradient, gradient, count, 0, 0);
    case FusedFunction::none: return;
  }
}

}  // namespace tide::cpu
