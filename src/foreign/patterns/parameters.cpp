#include <algorithm>

#include "foreign/patterns.h"

namespace tide {
namespace {

ParameterArray* find_parameter(Operation& operation, ParameterRole role) {
  for (ParameterArray& parameter : operation.parameters)
    if (parameter.role == role) return &parameter;
  return nullptr;
}

// An unnamed array of this value alone: a scale or shift that is not there.
bool is_filler(const Array& array, double value) {
  if (!array.name.empty()) return false;
  const std::vector<double> values = doubles_of(array);
  return std::all_of(values.begin(), values.end(), [&](double v) { return v == value; });
}

bool is_over_channels(const Operation& scale) {
  return std::get<ScaleOptions>(scale.options).axes == std::vector<std::int64_t>{1};
}

// A bias behind a product that has none.
std::optional<Made> join_bias(Operations& operations, const Operation& added) {
  const auto& options = std::get<ScaleOptions>(added.options);
  if (options.weight || !options.bias) return std::nullopt;
  Operation product = operations.at(added.inputs[0]);
  if (product.kind == LayerKind::fully_connected && product.piece == Piece::none) {
    auto& own = std::get<FullyConnectedOptions>(product.options);
    if (own.bias) return std::nullopt;
    own.bias = true;
  } else if (product.kind == LayerKind::convolution && product.piece == Piece::none) {
    auto& own = std::get<ConvolutionOptions>(product.options);
    if (own.bias) return std::nullopt;
    own.bias = true;
  } else {
    return std::nullopt;
  }
  product.parameters.push_back({ParameterRole::bias, added.parameters.at(0).array});
  product.last = added.node;
  return operations.append(std::move(product));
}

std::optional<Made> join_norm(Operations& operations, const Operation& added) {
  const auto& options = std::get<ScaleOptions>(added.options);
  Operation norm = operations.at(added.inputs[0]);
  if (norm.piece != Piece::none || norm.kind != LayerKind::group_norm || options.weight == options.bias)
    return std::nullopt;
  ParameterArray* const scale = find_parameter(norm, ParameterRole::scale);
  ParameterArray* const shift = find_parameter(norm, ParameterRole::shift);
  // The shift that is there would be scaled, too.
  if (scale == nullptr || shift == nullptr || !is_filler(shift->array, 0)) return std::nullopt;
  if (options.weight && !is_filler(scale->array, 1)) return std::nullopt;
  (options.weight ? scale : shift)->array = added.parameters.at(0).array;
  norm.last = added.node;
  return operations.append(std::move(norm));
}

}  // namespace

std::optional<Made> join_parameters(Operations& operations, const Operation& added) {
  if (added.piece != Piece::none || added.kind != LayerKind::scale || !is_over_channels(added) ||
      !operations.is_read_once(added.inputs[0], added.node))
    return std::nullopt;
  if (const auto product = join_bias(operations, added)) return product;
  return join_norm(operations, added);
}

}  // namespace tide
