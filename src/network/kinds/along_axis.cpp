// Functions of all elements along one axis.
#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

void check_axis(std::int64_t axis, const Shape& x) {
  require(axis >= 1 && axis < static_cast<std::int64_t>(x.rank()), "its axis is {}; give 1 to {}", axis, x.rank() - 1);
}

std::vector<Shape> softmax_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  check_axis(layer.as<SoftmaxAxisOptions>().axis, inputs[0]);
  return {inputs[0]};
}

std::vector<Shape> normalized_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<L2NormalizeOptions>();
  check_axis(options.axis, inputs[0]);
  require(std::isfinite(options.epsilon) && options.epsilon > 0, "epsilon is {}; it must be finite and above 0",
          options.epsilon);
  return {inputs[0]};
}

}  // namespace

KindDescription describe_softmax() {
  KindDescription kind;
  kind.defaults = SoftmaxAxisOptions{};
  kind.shapes = softmax_shapes;
  kind.forward = {{reads(Role::x), writes(Role::y)}, {{Role::x, Role::y}}};
  kind.backward = {{reads(Role::y), reads(Role::dy), writes(Role::dx)}, {{Role::dy, Role::dx}, {Role::y, Role::dx}}};
  kind.flops_per_element = 12;
  kind.passes = Passes::two;
  return kind;
}

KindDescription describe_l2_normalize() {
  KindDescription kind;
  kind.defaults = L2NormalizeOptions{};
  kind.shapes = normalized_shapes;
  kind.forward = {{reads(Role::x), writes(Role::y)}, {{Role::x, Role::y}}};
  kind.backward = {{reads(Role::x), reads(Role::dy), writes(Role::dx)}, {{Role::dy, Role::dx}, {Role::x, Role::dx}}};
  kind.flops_per_element = 4;
  kind.passes = Passes::two;
  return kind;
}

}  // namespace tide
