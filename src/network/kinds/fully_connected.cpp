#include "network/kinds/weighted.h"

namespace tide {
namespace {

std::vector<Shape> fully_connected_shapes(const Layer& layer, const std::vector<Shape>& /*inputs*/) {
  const auto& options = layer.as<FullyConnectedOptions>();
  require(options.channels >= 1, "it has {} output channels; give at least 1", options.channels);
  return {Shape{1, options.channels}};
}

std::vector<NewParameter> fully_connected_parameters(const Layer& layer, const Shape& input) {
  const auto& options = layer.as<FullyConnectedOptions>();
  // A vector and an image of one pixel have one and the same weight.
  const Shape weight =
      input.positions() == 1 ? Shape{options.channels, input.per_sample()} : input.with_batch(options.channels);
  return weight_and_bias(weight, options.channels, options.bias, input.per_sample());
}

}  // namespace

KindDescription describe_fully_connected() {
  KindDescription kind = describe_weighted();
  kind.defaults = FullyConnectedOptions{};
  kind.shapes = fully_connected_shapes;
  kind.parameters = fully_connected_parameters;
  kind.product = Product::matrix;
  kind.paper_type = PaperType::fully_connected;
  return kind;
}

}  // namespace tide
