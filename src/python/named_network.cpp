#include "named_network.h"

#include <algorithm>

namespace tide::python {
namespace {

// As PyTorch has it where nobody says how: of one number for each channel one extent, of a matrix two.
std::vector<std::int64_t> usual_shape(const Network& network, ParameterId id) {
  const Parameter& parameter = network.parameters[id.index()];
  const Shape& shape = parameter.shape;
  if (parameter.role != ParameterRole::weight && shape.elements() == shape.channels() * shape.batch())
    return {shape.elements()};
  for (const Layer& layer : network.layers)
    for (const LayerParameter& used : layer.parameters)
      if (layer.kind == LayerKind::fully_connected && used.id == id)
        return used.role == ParameterRole::weight ? std::vector{shape.batch(), shape.per_sample()}
                                                  : std::vector{shape.elements()};
  return extents_of(shape);
}

}  // namespace

NamedNetwork::NamedNetwork(NetworkPtr network) : network_(std::move(network)) { name_arrays({}); }

NamedNetwork NamedNetwork::load(const ModelRequest& request, const std::string& weights) {
  Model model = load_model(request);
  NamedNetwork result;
  result.network_ = std::move(model.network);
  result.model_ = request.model;
  result.values_ = std::move(model.values);
  result.notes_ = std::move(model.notes);
  result.name_arrays(model.names);
  return weights.empty() ? result : result.with_weights(weights);
}

NamedNetwork NamedNetwork::import(const ForeignGraph& graph, const ImportOptions& options) {
  ImportedNetwork imported = import_graph(graph, options);
  NamedNetwork result;
  result.network_ = std::move(imported.network);
  result.targets_ = std::move(imported.targets);
  result.notes_ = std::move(imported.notes);
  for (const WeightName& weight : imported.weights) {
    const auto constant = graph.constants.find(weight.array);
    result.tensors_[weight.array] =
        constant != graph.constants.end() ? constant->second : imported.made.at(weight.array);
  }
  result.name_arrays(imported.weights);
  return result;
}

NamedNetwork NamedNetwork::with(NetworkPtr network) const {
  NamedNetwork result = *this;
  result.network_ = std::move(network);
  return result;
}

NamedNetwork NamedNetwork::with_weights(const std::string& file) const {
  NamedNetwork result = *this;
  std::vector<WeightNames> known = weight_names(*network_, model_);
  if (!names_.empty()) known.push_back({"the model's file", names_});
  LoadedWeights loaded = load_weights(*network_, known, file);
  for (auto& [name, values] : loaded.values) result.values_[name] = std::move(values);
  result.notes_.insert(result.notes_.end(), loaded.notes.begin(), loaded.notes.end());
  return result;
}

void NamedNetwork::name_arrays(const std::vector<WeightName>& names) {
  names_ = names;
  std::unordered_map<std::string_view, const WeightName*> known;
  for (const WeightName& name : names_) known.emplace(name.parameter, &name);
  for (std::size_t p = 0; p < network_->parameters.size(); ++p) {
    const Parameter& parameter = network_->parameters[p];
    const auto found = known.find(parameter.name);
    const WeightName name = found != known.end() ? *found->second : WeightName{parameter.name, parameter.name, {}, {}};
    std::vector<std::int64_t> shape = name.seen_as;
    if (const auto tensor = tensors_.find(name.array); tensor != tensors_.end())
      shape = tensor->second.shape;
    else if (shape.empty())
      shape = usual_shape(*network_, ParameterId(p));
    by_name_.emplace(name.array, arrays_.size());
    arrays_.push_back({ParameterId(p), name, std::move(shape)});
  }
}

const NamedArray& NamedNetwork::array(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end())
    throw Error("{} has no array '{}'; network.weight_names lists those that it has", network_->name, name);
  return arrays_[found->second];
}

std::optional<std::vector<float>> NamedNetwork::start_value(const NamedArray& array) const {
  if (const auto value = values_.find(array.name.parameter); value != values_.end()) return value->second;
  const auto tensor = tensors_.find(array.name.array);
  if (tensor == tensors_.end()) return std::nullopt;
  const std::vector<float> values = values_of(tensor->second);
  return to_parameter_order(array.name, std::span<const float>(values));
}

std::vector<double> NamedNetwork::exact_start_value(const NamedArray& array, std::uint64_t seed) const {
  if (const auto tensor = tensors_.find(array.name.array);
      tensor != tensors_.end() && !values_.contains(array.name.parameter)) {
    const std::vector<double> values = doubles_of(tensor->second);
    return to_parameter_order(array.name, std::span<const double>(values));
  }
  const std::optional<std::vector<float>> start = start_value(array);
  const std::vector<float> floats = start ? *start : initial_values(*network_, array.id, seed);
  return {floats.begin(), floats.end()};
}

}  // namespace tide::python
