// Convolutions and transposed convolutions.
#include <algorithm>

#include "network/kinds/weighted.h"
#include "network/kinds/window.h"

namespace tide {
namespace {

void check(const ConvolutionOptions& options, const Shape& x) {
  check_image(x);
  require(options.channels >= 1, "it has {} output channels; give at least 1", options.channels);
  require(options.groups >= 1, "it has {} groups; give at least 1", options.groups);
  require(x.channels() % options.groups == 0 && options.channels % options.groups == 0,
          "{} groups must divide both its {} input and its {} output channels", options.groups, x.channels(),
          options.channels);
  check_span(vertical(options.window));
  check_span(horizontal(options.window));
}

std::int64_t transposed_size(const WindowSpan& span, std::int64_t in) {
  const std::int64_t full = checked_add(checked_multiply(in - 1, span.stride), span.effective());
  const std::int64_t out = full - checked_add(span.before, span.after);
  require(out >= 1, "the padding leaves an output {} of {}; use less padding or a larger kernel", span.axis, out);
  return out;
}

std::vector<Shape> convolution_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<ConvolutionOptions>();
  const Shape& x = inputs[0];
  check(options, x);
  return {Shape{1, options.channels, window_count(vertical(options.window), x.height(), false),
                window_count(horizontal(options.window), x.width(), false)}};
}

std::vector<Shape> transposed_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<ConvolutionOptions>();
  const Shape& x = inputs[0];
  check(options, x);
  return {Shape{1, options.channels, transposed_size(vertical(options.window), x.height()),
                transposed_size(horizontal(options.window), x.width())}};
}

// How many products are summed into one output, if each input were met by the whole window.
std::int64_t full_fan_in(const ConvolutionOptions& options, const Shape& input) {
  const std::int64_t taps = checked_multiply(options.window.kernel_height, options.window.kernel_width);
  return checked_multiply(input.channels() / options.groups, taps);
}

std::vector<NewParameter> convolution_parameters(const Layer& layer, const Shape& input) {
  const auto& options = layer.as<ConvolutionOptions>();
  const Shape weight{options.channels, input.channels() / options.groups, options.window.kernel_height,
                     options.window.kernel_width};
  return weight_and_bias(weight, options.channels, options.bias, full_fan_in(options, input));
}

std::vector<NewParameter> transposed_parameters(const Layer& layer, const Shape& input) {
  const auto& options = layer.as<ConvolutionOptions>();
  const Window& window = options.window;
  const Shape weight{input.channels(), options.channels / options.groups, window.kernel_height, window.kernel_width};
  // The window is spread over stride x stride outputs.
  const std::int64_t fan_in = std::max<std::int64_t>(
      1, full_fan_in(options, input) / checked_multiply(window.stride_height, window.stride_width));
  return weight_and_bias(weight, options.channels, options.bias, fan_in);
}

}  // namespace

KindDescription describe_convolution() {
  KindDescription kind = describe_weighted();
  kind.defaults = ConvolutionOptions{};
  kind.shapes = convolution_shapes;
  kind.parameters = convolution_parameters;
  kind.product = Product::convolution;
  kind.offload = true;
  kind.paper_type = PaperType::convolution;
  return kind;
}

KindDescription describe_transposed_convolution() {
  KindDescription kind = describe_convolution();
  kind.shapes = transposed_shapes;
  kind.parameters = transposed_parameters;
  kind.product = Product::transposed_convolution;
  return kind;
}

}  // namespace tide
