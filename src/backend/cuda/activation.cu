// Functions of single elements with numbers of their own: kernels, and the recipe that launches them.
#include "backend/cuda/elementwise.cuh"
#include "backend/cuda/functions.cuh"
#include "backend/cuda/recipe.h"
#include "network/kind.h"

namespace tide::cuda {
namespace {

template <ActivationFunction function>
struct Activated {
  FunctionNumbers numbers;
  __device__ float operator()(float x) const { return activated<function>(x, numbers); }
};
template <ActivationFunction function>
struct ThroughSlope {
  FunctionNumbers numbers;
  __device__ float operator()(float from, float dy) const { return dy * slope_at<function>(from, numbers); }
};

template <ActivationFunction function>
using Constant = std::integral_constant<ActivationFunction, function>;

// Calls `use` with the function as a type.
template <typename Use>
auto with_function(ActivationFunction function, Use use) {
  using F = ActivationFunction;
  switch (function) {
    case F::clip: return use(Constant<F::clip>{});
    case F::leaky_relu: return use(Constant<F::leaky_relu>{});
    case F::elu: return use(Constant<F::elu>{});
    case F::silu: return use(Constant<F::silu>{});
    case F::gelu: return use(Constant<F::gelu>{});
    case F::gelu_tanh: return use(Constant<F::gelu_tanh>{});
    case F::hard_sigmoid: return use(Constant<F::hard_sigmoid>{});
    case F::hard_swish: return use(Constant<F::hard_swish>{});
    case F::mish: return use(Constant<F::mish>{});
    case F::softplus: return use(Constant<F::softplus>{});
    case F::affine: return use(Constant<F::affine>{});
    case F::square: return use(Constant<F::square>{});
    case F::exp: return use(Constant<F::exp>{});
    case F::sqrt: return use(Constant<F::sqrt>{});
    case F::abs: break;
  }
  return use(Constant<F::abs>{});
}

}  // namespace

Recipe activation_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<ActivationOptions>();
  const bool of_result = description_of(LayerKind::activation).slope(view.layer()) == Slope::of_result;
  const FunctionNumbers numbers{static_cast<float>(options.alpha), static_cast<float>(options.beta), of_result};
  const std::int64_t count = view.input().elements();
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y);
    return recipe([=, function = options.function, element = element_of(view, y)](const Launch& launch) {
      check(with_function(function,
                          [&](auto f) {
                            return unary(context->stream(), element, launch.operands[x], launch.operands[y], count,
                                         Activated<decltype(f)::value>{numbers});
                          }),
            "an elementwise kernel");
    });
  }
  const std::size_t dy = view.read(Role::dy), dx = view.written(Role::dx);
  // Where the slope is the same everywhere, any value will do.
  const auto x = view.find_read(Role::x), y = view.find_read(Role::y);
  const std::size_t from = x ? *x : y ? *y : dy;
  return recipe([=, function = options.function, element = element_of(view, dx)](const Launch& launch) {
    check(with_function(function,
                        [&](auto f) {
                          return binary(context->stream(), element, launch.operands[from], launch.operands[dy],
                                        launch.operands[dx], count, ThroughSlope<decltype(f)::value>{numbers});
                        }),
          "an elementwise kernel");
  });
}

}  // namespace tide::cuda
