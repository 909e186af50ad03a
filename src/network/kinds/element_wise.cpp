// Functions of one element, and of two, whose shapes need not be equal.
#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> activation_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<ActivationOptions>();
  require(std::isfinite(options.alpha) && std::isfinite(options.beta), "alpha is {} and beta {}; both must be finite",
          options.alpha, options.beta);
  if (options.function == ActivationFunction::clip)
    require(options.alpha <= options.beta,
            "it clips to {} .. {}; the first (alpha) must not be above the second (beta)", options.alpha, options.beta);
  if (options.function == ActivationFunction::softplus)
    require(options.alpha > 0, "alpha is {}; of a softplus it must be above 0", options.alpha);
  return {inputs[0]};
}

Slope activation_slope(const Layer& layer) {
  const auto& options = layer.as<ActivationOptions>();
  switch (options.function) {
    case ActivationFunction::affine: return Slope::constant;
    case ActivationFunction::clip:
    case ActivationFunction::hard_sigmoid:
    case ActivationFunction::exp:
    case ActivationFunction::sqrt: return Slope::of_result;
    // Their sign is that of their input unless alpha turns it round.
    case ActivationFunction::leaky_relu:
    case ActivationFunction::elu: return options.alpha > 0 ? Slope::of_result : Slope::of_input;
    case ActivationFunction::silu:
    case ActivationFunction::gelu:
    case ActivationFunction::gelu_tanh:
    case ActivationFunction::hard_swish:
    case ActivationFunction::mish:
    case ActivationFunction::softplus:
    case ActivationFunction::square:
    case ActivationFunction::abs: break;
  }
  return Slope::of_input;
}

Slope combine_slope(const Layer& layer) {
  const CombineFunction function = layer.as<CombineOptions>().function;
  return function == CombineFunction::add || function == CombineFunction::subtract ? Slope::constant : Slope::of_input;
}

// A vector counts as an image of one pixel, as it does elsewhere.
std::vector<Shape> combined_shapes(const Layer& /*layer*/, const std::vector<Shape>& inputs) {
  Shape a = inputs[0], b = inputs[1];
  if (a.rank() == 2 && b.rank() == 4) a = {1, a.channels(), 1, 1};
  if (b.rank() == 2 && a.rank() == 4) b = {1, b.channels(), 1, 1};
  require(a.rank() == b.rank(), "its inputs are {} and {}; give both as many extents", sample_text(inputs[0]),
          sample_text(inputs[1]));
  Shape result = a;
  for (std::size_t axis = 1; axis < a.rank(); ++axis) {
    const std::int64_t one = a.extent(axis), other = b.extent(axis);
    require(one == other || one == 1 || other == 1, "its inputs are {} and {}; extents must be equal, or one of them 1",
            sample_text(inputs[0]), sample_text(inputs[1]));
    result = result.with_extent(axis, one == 1 ? other : one);
  }
  return {result};
}

bool varies_over(const std::vector<std::int64_t>& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

std::vector<Shape> scaled_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<ScaleOptions>();
  require(options.weight || options.bias, "it has neither a weight nor a bias; give it one");
  require(!options.axes.empty(), "its parameters vary over no axis; list at least one");
  for (std::size_t i = 0; i < options.axes.size(); ++i) {
    const std::int64_t axis = options.axes[i];
    require(axis >= 1 && axis < static_cast<std::int64_t>(inputs[0].rank()),
            "its parameters vary over axis {}; the input has axes 1 to {} behind the batch", axis,
            inputs[0].rank() - 1);
    require(i == 0 || options.axes[i - 1] < axis, "its axes must ascend");
  }
  return {inputs[0]};
}

// Of the axes that it varies over; 1 for the others, so that it lies as the input does.
std::vector<NewParameter> scale_parameters(const Layer& layer, const Shape& input) {
  const auto& options = layer.as<ScaleOptions>();
  Shape shape = input.with_batch(1);
  for (std::size_t axis = 1; axis < input.rank(); ++axis)
    if (!varies_over(options.axes, axis)) shape = shape.with_extent(axis, 1);
  if (shape.elements() == input.channels() && varies_over(options.axes, 1)) shape = per_channel(input.channels());
  std::vector<NewParameter> made;
  if (options.weight) made.push_back({ParameterRole::scale, shape});
  if (options.bias) made.push_back({ParameterRole::shift, shape});
  return made;
}

}  // namespace

ActivationOptions ActivationOptions::of(ActivationFunction function) {
  ActivationOptions options;
  options.function = function;
  switch (function) {
    case ActivationFunction::clip: options.beta = 6; break;
    case ActivationFunction::leaky_relu: options.alpha = 0.01; break;
    case ActivationFunction::elu:
    case ActivationFunction::affine: options.alpha = 1; break;
    case ActivationFunction::hard_sigmoid: options.alpha = 1.0 / 6, options.beta = 0.5; break;
    case ActivationFunction::softplus: options.alpha = 1, options.beta = 20; break;
    case ActivationFunction::silu:
    case ActivationFunction::gelu:
    case ActivationFunction::gelu_tanh:
    case ActivationFunction::hard_swish:
    case ActivationFunction::mish:
    case ActivationFunction::square:
    case ActivationFunction::exp:
    case ActivationFunction::sqrt:
    case ActivationFunction::abs: break;
  }
  return options;
}

KindDescription describe_activation() {
  KindDescription kind;
  kind.defaults = ActivationOptions{};
  kind.shapes = activation_shapes;
  kind.slope = activation_slope;
  kind.forward = {{reads(Role::x), writes(Role::y)}, {{Role::x, Role::y}}};
  kind.backward = {
      {reads(Role::x, When::slope_of_input), reads(Role::y, When::slope_of_result), reads(Role::dy), writes(Role::dx)},
      {{Role::dy, Role::dx}, {Role::x, Role::dx}, {Role::y, Role::dx}}};
  kind.flops_per_element = 10;
  kind.paper_type = PaperType::activation;
  return kind;
}

// Where a gradient is smaller than that of the result, it is the sum over what it was spread to.
KindDescription describe_combine() {
  KindDescription kind;
  kind.defaults = CombineOptions{};
  kind.fewest_inputs = kind.most_inputs = 2;
  kind.shapes = combined_shapes;
  kind.slope = combine_slope;
  kind.forward = {{reads(Role::x), writes(Role::y)}, {{Role::x, Role::y}}};
  kind.backward.operands = {reads(Role::x, When::slope_of_input), reads(Role::dy), writes(Role::dx)};
  kind.flops_per_element = 2;
  return kind;
}

KindDescription describe_scale() {
  KindDescription kind;
  kind.defaults = ScaleOptions{};
  kind.shapes = scaled_shapes;
  kind.parameters = scale_parameters;
  kind.forward = {{reads(Role::x), reads(Role::weight), reads(Role::bias), writes(Role::y)}, {{Role::x, Role::y}}};
  kind.backward.operands = {reads(Role::x),   reads(Role::dy),         reads(Role::weight),
                            writes(Role::dx), adds_to(Role::d_weight), adds_to(Role::d_bias)};
  kind.flops_per_element = 2;
  return kind;
}

}  // namespace tide
