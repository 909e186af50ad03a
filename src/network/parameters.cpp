// The part of Builder that makes the parameters of a layer.
#include <algorithm>

#include "network/builder.h"

namespace tide {
namespace {

Shape vector_shape(std::int64_t channels) { return {1, channels, 1, 1}; }

std::string_view role_suffix(ParameterRole role) {
  switch (role) {
    case ParameterRole::weight: return "weight";
    case ParameterRole::bias: return "bias";
    case ParameterRole::scale: return "scale";
    case ParameterRole::shift: return "shift";
    case ParameterRole::running_mean: return "running_mean";
    case ParameterRole::running_variance: return "running_variance";
  }
  return "";
}

bool is_statistic(const Parameter& parameter) {
  return parameter.role == ParameterRole::running_mean || parameter.role == ParameterRole::running_variance;
}

Parameter make(const Layer& layer, ParameterRole role, const Shape& shape, std::int64_t fan_in) {
  static_cast<void>(shape.elements());  // throws where it overflows
  return {.name = fmt::format("{}.{}", layer.name, role_suffix(role)), .role = role, .shape = shape, .fan_in = fan_in};
}

// How many products are summed into one output.
std::int64_t convolution_fan_in(const ConvolutionOptions& options, const Shape& input, bool transposed) {
  const Window& window = options.window;
  const std::int64_t taps = checked_multiply(window.kernel_height, window.kernel_width);
  const std::int64_t all = checked_multiply(input.channels() / options.groups, taps);
  if (!transposed) return all;
  // A transposed convolution spreads its window over stride x stride outputs.
  return std::max<std::int64_t>(1, all / checked_multiply(window.stride_height, window.stride_width));
}

std::vector<Parameter> convolution_parameters(const Layer& layer, const Shape& input) {
  const auto& options = layer.as<ConvolutionOptions>();
  const Window& window = options.window;
  const bool transposed = layer.kind == LayerKind::transposed_convolution;
  const Shape weight =
      transposed
          ? Shape{input.channels(), options.channels / options.groups, window.kernel_height, window.kernel_width}
          : Shape{options.channels, input.channels() / options.groups, window.kernel_height, window.kernel_width};
  const std::int64_t fan_in = convolution_fan_in(options, input, transposed);
  std::vector<Parameter> made{make(layer, ParameterRole::weight, weight, fan_in)};
  if (options.bias) made.push_back(make(layer, ParameterRole::bias, vector_shape(options.channels), fan_in));
  return made;
}

std::vector<Parameter> fully_connected_parameters(const Layer& layer, const Shape& input) {
  const auto& options = layer.as<FullyConnectedOptions>();
  const std::int64_t fan_in = input.per_sample();
  std::vector<Parameter> made{make(layer, ParameterRole::weight, input.with_batch(options.channels), fan_in)};
  if (options.bias) made.push_back(make(layer, ParameterRole::bias, vector_shape(options.channels), fan_in));
  return made;
}

std::vector<Parameter> batch_norm_parameters(const Layer& layer, const Shape& input) {
  const Shape shape = vector_shape(input.channels());
  return {make(layer, ParameterRole::scale, shape, 1), make(layer, ParameterRole::shift, shape, 1),
          make(layer, ParameterRole::running_mean, shape, 1), make(layer, ParameterRole::running_variance, shape, 1)};
}

std::vector<Parameter> wanted_parameters(const Layer& layer, const Shape& input) try {
  switch (layer.kind) {
    case LayerKind::convolution:
    case LayerKind::transposed_convolution: return convolution_parameters(layer, input);
    case LayerKind::fully_connected: return fully_connected_parameters(layer, input);
    case LayerKind::batch_norm: return batch_norm_parameters(layer, input);
    default: return {};
  }
} catch (const Error& error) {
  throw Error("layer '{}' ({}): {}", layer.name, kind_name(layer.kind), error.what());
}

}  // namespace

void Builder::make_parameters(Layer& layer, const Shape& input) {
  std::vector<Parameter> wanted = wanted_parameters(layer, input);
  const bool shared = share_from_.valid();
  if (shared) share_parameters(layer, wanted);
  for (Parameter& parameter : wanted) {
    const bool statistic = is_statistic(parameter);
    if (shared && !statistic) continue;
    (statistic ? layer.statistics : layer.parameters).push_back(ParameterId(network_.parameters.size()));
    network_.parameters.push_back(std::move(parameter));
  }
}

void Builder::share_parameters(Layer& layer, const std::vector<Parameter>& wanted) const {
  const Layer& source = network_.layer(share_from_);
  if (source.kind != layer.kind || source.parameters.empty())
    throw Error("layer '{}' ({}) cannot share the parameters of '{}' ({}); both must be of one kind with parameters",
                layer.name, kind_name(layer.kind), source.name, kind_name(source.kind));
  std::size_t next = 0;
  for (const Parameter& parameter : wanted) {
    if (is_statistic(parameter)) continue;
    const bool present = next < source.parameters.size();
    const Parameter* given = present ? &network_.parameters[source.parameters[next++].index()] : nullptr;
    if (given == nullptr || given->shape != parameter.shape)
      throw Error("layer '{}' cannot share the parameters of '{}': its {} would be {}x{}, the other's is {}",
                  layer.name, source.name, role_suffix(parameter.role), parameter.shape.batch(),
                  sample_text(parameter.shape),
                  given == nullptr ? std::string("missing")
                                   : fmt::format("{}x{}", given->shape.batch(), sample_text(given->shape)));
  }
  if (next != source.parameters.size())
    throw Error("layer '{}' cannot share the parameters of '{}', which has a bias too; give both one or neither",
                layer.name, source.name);
  layer.parameters = source.parameters;
}

}  // namespace tide
