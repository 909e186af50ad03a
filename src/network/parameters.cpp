// The part of Builder that makes the parameters of a layer.
#include "network/builder.h"
#include "network/kind.h"

namespace tide {
namespace {

std::vector<NewParameter> wanted_parameters(const Layer& layer, const Shape& input) try {
  const KindDescription& kind = description_of(layer.kind);
  if (kind.parameters == nullptr) return {};
  std::vector<NewParameter> wanted = kind.parameters(layer, input);
  for (const NewParameter& parameter : wanted)
    static_cast<void>(parameter.shape.elements());  // throws where it overflows
  return wanted;
} catch (const Error& error) {
  throw Error("layer '{}' ({}): {}", layer.name, kind_name(layer.kind), error.what());
}

}  // namespace

void Builder::make_parameters(Layer& layer, const Shape& input) {
  const std::vector<NewParameter> wanted = wanted_parameters(layer, input);
  const bool shared = share_from_.valid();
  if (shared) share_parameters(layer, wanted);
  for (const NewParameter& made : wanted) {
    const bool statistic = is_statistic(made.role);
    if (shared && !statistic) continue;
    (statistic ? layer.statistics : layer.parameters).push_back({made.role, ParameterId(network_.parameters.size())});
    network_.parameters.push_back({.name = fmt::format("{}.{}", layer.name, parameter_role_name(made.role)),
                                   .role = made.role,
                                   .shape = made.shape,
                                   .fan_in = made.fan_in});
  }
}

void Builder::share_parameters(Layer& layer, const std::vector<NewParameter>& wanted) const {
  const Layer& source = network_.layer(share_from_);
  if (source.kind != layer.kind || source.parameters.empty())
    throw Error("layer '{}' ({}) cannot share the parameters of '{}' ({}); both must be of one kind with parameters",
                layer.name, kind_name(layer.kind), source.name, kind_name(source.kind));
  const auto text = [](const Shape& shape) { return fmt::format("{}", fmt::join(shape.extents(), "x")); };
  std::size_t found = 0;
  for (const NewParameter& parameter : wanted) {
    if (is_statistic(parameter.role)) continue;
    const ParameterId id = source.parameter(parameter.role);
    const Parameter* given = id.valid() ? &network_.parameters[id.index()] : nullptr;
    if (given == nullptr || given->shape != parameter.shape)
      throw Error("layer '{}' cannot share the parameters of '{}': its {} would be {}, the other's is {}", layer.name,
                  source.name, parameter_role_name(parameter.role), text(parameter.shape),
                  given == nullptr ? std::string("missing") : text(given->shape));
    ++found;
  }
  if (found != source.parameters.size())
    throw Error("layer '{}' cannot share the parameters of '{}', which has a bias too; give both one or neither",
                layer.name, source.name);
  layer.parameters = source.parameters;
}

}  // namespace tide
