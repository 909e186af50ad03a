// Names, nodes and constants of the graph that layers become.
#include "base/error.h"
#include "foreign/raiser.h"
#include "network/kind.h"
#include "network/reordered.h"

namespace tide {

std::string Raiser::name_of(Value value) const {
  const Layer& layer = network_.layer(value.layer);
  if (const auto other = renamed_.find(value); other != renamed_.end()) return other->second;
  return layer.outputs.size() == 1 ? layer.name : fmt::format("{}:{}", layer.name, value.output);
}

ForeignNode& Raiser::node(const Layer& layer, std::string op, Names inputs, Names outputs) {
  ForeignNode made;
  made.op = std::move(op);
  made.name = outputs.front() == layer.name ? layer.name : outputs.front();
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  return result_.graph.nodes.emplace_back(std::move(made));
}

ForeignNode& Raiser::node(const Layer& layer, std::string op, Names inputs) {
  return node(layer, std::move(op), std::move(inputs), {layer.name});
}

std::string Raiser::constant(const Layer& layer, const char* what, ForeignTensor tensor) {
  std::string name = fmt::format("{}:{}", layer.name, what);
  result_.graph.constants.emplace(name, std::move(tensor));
  return name;
}

std::string Raiser::whole_numbers(const Layer& layer, const char* what, std::vector<std::int64_t> numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  return constant(layer, what, tensor_of<std::int64_t>(ForeignType::i64, {count}, std::move(numbers)));
}

std::string Raiser::number(const Layer& layer, const char* what, double value) {
  return constant(layer, what, tensor_of<float>(ForeignType::f32, {}, {static_cast<float>(value)}));
}

std::string Raiser::reshaped(const Layer& layer, const std::string& from, std::vector<std::int64_t> sample,
                             const std::string& to) {
  sample.insert(sample.begin(), 0);
  node(layer, "Reshape", {from, whole_numbers(layer, (to + ".shape").c_str(), std::move(sample))}, {to});
  return to;
}

std::string Raiser::array(const Layer& layer, ParameterRole role, const std::vector<std::int64_t>& extents) {
  const Parameter& parameter = network_.parameters[layer.parameter(role).index()];
  const auto known = names_.find(parameter.name);
  const WeightName own{parameter.name, parameter.name, {}, {}};
  const WeightName& name = known != names_.end() ? *known->second : own;
  auto& constants = result_.graph.constants;
  if (!constants.contains(name.array)) {
    const auto values = values_.find(parameter.name);
    if (values == values_.end()) throw Error("parameter '{}' has no values", parameter.name);
    std::vector<std::int64_t> shape = name.seen_as;
    if (shape.empty()) shape = array_extents(network_, parameter);
    if (!extents.empty() && name.seen_as.empty()) shape = extents;
    const bool matrix = layer.kind == LayerKind::fully_connected && role == ParameterRole::weight;
    if (matrix && name.seen_as.empty()) shape = {parameter.shape.batch(), parameter.shape.per_sample()};
    constants.emplace(name.array, tensor_of<float>(ForeignType::f32, shape,
                                                   to_array_order(name, std::span<const float>(values->second))));
    if (parameter.frozen) result_.graph.frozen.push_back(name.array);
  }
  return name.array;
}

bool Raiser::is_turned(const Layer& layer) const {
  const auto known = names_.find(network_.parameters[layer.parameter(ParameterRole::weight).index()].name);
  return known != names_.end() && !known->second->axes.empty();
}

std::vector<std::int64_t> Raiser::sample_of(const Shape& shape) {
  return {shape.extents().begin() + 1, shape.extents().end()};
}

std::string Raiser::as_image(const Layer& layer) {
  const Shape& x = shape(layer);
  if (x.rank() == 4) return input(layer);
  return reshaped(layer, input(layer), {x.channels(), 1, 1}, layer.name + ":image");
}

std::string Raiser::with_rank(const Layer& layer, std::size_t i, const Shape& joined) {
  if (shape(layer, i).rank() == joined.rank()) return input(layer, i);
  std::vector<std::int64_t> sample(joined.rank() - 1, 1);
  sample[0] = shape(layer, i).channels();
  return reshaped(layer, input(layer, i), std::move(sample), fmt::format("{}:in{}", layer.name, i));
}

}  // namespace tide
