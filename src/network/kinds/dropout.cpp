#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> dropout_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<DropoutOptions>();
  require(options.rate >= 0 && options.rate < 1, "its rate is {}; it must be at least 0 and below 1", options.rate);
  return {inputs[0]};
}

}  // namespace

// The mask is made again from its random numbers, so nothing is saved.
KindDescription describe_dropout() {
  KindDescription kind;
  kind.defaults = DropoutOptions{};
  kind.shapes = dropout_shapes;
  kind.forward = {{reads(Role::x), writes(Role::y)}, {{Role::x, Role::y}}};
  kind.backward = {{reads(Role::dy), writes(Role::dx)}, {{Role::dy, Role::dx}}};
  kind.alias = Alias::forward_only;
  kind.flops_per_element = 10;
  kind.paper_type = PaperType::dropout;
  return kind;
}

}  // namespace tide
