#include "network/builder.h"

#include <algorithm>

#include "network/kind.h"
#include "network/shapes.h"

namespace tide {
namespace {

// One line per error, so nothing unprintable in a name.
void check_name(const std::string& name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control))
    throw Error("a layer's name contains a control character; use printable characters");
}

void check_outputs(const Network& network) {
  std::vector<std::vector<bool>> used;
  used.reserve(network.layers.size());
  for (const Layer& layer : network.layers) {
    for (const Value& input : layer.inputs) used[input.layer.index()][static_cast<std::size_t>(input.output)] = true;
    used.emplace_back(layer.outputs.size(), is_loss(layer));
  }
  const bool has_loss = network.has_loss();
  const Layer* result = nullptr;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Layer& layer = network.layers[i];
    for (std::size_t output = 0; output < used[i].size(); ++output) {
      if (used[i][output]) continue;
      if (has_loss)
        throw Error("output {} of layer '{}' is not used; connect it to a loss or remove the layer", output,
                    layer.name);
      if (result != nullptr)
        throw Error("layers '{}' and '{}' both have unused outputs; a network without a loss has one result",
                    result->name, layer.name);
      result = &layer;
    }
  }
}

void check_labels(const Network& network) {
  struct Range {
    std::int64_t first, end;
    const Layer* layer;
  };
  std::vector<Range> ranges;
  for (const Layer& layer : network.layers) {
    if (!is_loss(layer)) continue;
    const LossLabels labels = description_of(layer.kind).loss(layer);
    ranges.push_back({labels.offset, checked_add(labels.offset, labels.count), &layer});
  }
  std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].end)
      throw Error("losses '{}' and '{}' use the same labels; give '{}' a label offset of at least {}",
                  ranges[i - 1].layer->name, ranges[i].layer->name, ranges[i].layer->name, ranges[i - 1].end);
}

// A parameter is frozen if every layer that uses it is; statistics are never trained.
void mark_frozen(Network& network) {
  for (Parameter& parameter : network.parameters) parameter.frozen = true;
  for (const Layer& layer : network.layers)
    if (!layer.frozen)
      for (const LayerParameter& parameter : layer.parameters) network.parameters[parameter.id.index()].frozen = false;
}

}  // namespace

Builder::Builder(std::string name) : counters_(kLayerKinds, 0) { network_.name = std::move(name); }

std::vector<Value> Builder::split(Value x, std::vector<std::int64_t> channels, std::string name) {
  const LayerId id = layer(LayerKind::split, {x}, SplitOptions{std::move(channels)}, std::move(name));
  std::vector<Value> values(network_.layer(id).outputs.size(), Value{id});
  for (std::size_t i = 0; i < values.size(); ++i) values[i].output = static_cast<std::int32_t>(i);
  return values;
}

LayerId Builder::layer(LayerKind kind, std::vector<Value> inputs, LayerOptions options, std::string name) {
  // Running numbers skip names that the user has given to other layers.
  while (name.empty()) {
    name = fmt::format("{}{}", kind_name(kind), ++counters_[static_cast<std::size_t>(kind)]);
    if (names_.contains(name)) name.clear();
  }
  check_name(name);
  if (names_.contains(name)) throw Error("two layers are called '{}'; rename one of them", name);

  std::vector<Shape> shapes;
  shapes.reserve(inputs.size());
  for (const Value& input : inputs) {
    check_value(input, name);
    const Layer& source = network_.layer(input.layer);
    if (is_loss(source))
      throw Error("layer '{}' ({}): its input is the loss '{}'; take the values that the loss is made from", name,
                  kind_name(kind), source.name);
    shapes.push_back(network_.shape(input));
  }
  if (std::holds_alternative<NoOptions>(options)) options = description_of(kind).defaults;
  Layer made;
  made.kind = kind;
  made.name = std::move(name);
  made.inputs = std::move(inputs);
  made.options = std::move(options);
  made.frozen = frozen_;
  made.outputs = infer_shapes(made, shapes);
  if (!shapes.empty()) make_parameters(made, shapes[0]);
  share_from_ = LayerId();

  const LayerId id(network_.layers.size());
  names_.insert(made.name);
  network_.layers.push_back(std::move(made));
  return id;
}

void Builder::check_value(Value value, const std::string& user) const {
  if (!value.layer.valid() || value.layer.index() >= network_.layers.size() || value.output < 0 ||
      static_cast<std::size_t>(value.output) >= network_.layer(value.layer).outputs.size())
    throw Error("layer '{}': an input is no value of this network; pass what a call of this builder returned", user);
}

Builder& Builder::sharing(Value value) {
  check_value(value, "the next layer");
  share_from_ = value.layer;
  return *this;
}

Builder& Builder::freeze(bool frozen) {
  frozen_ = frozen;
  return *this;
}

Builder& Builder::mirror(Value value, int count) {
  check_value(value, "mirror");
  Layer& layer = network_.layers[value.layer.index()];
  if (count < 0) throw Error("layer '{}': its mirror count is {}; it must not be negative", layer.name, count);
  layer.mirror = count;
  return *this;
}

Network Builder::build() && {
  const auto is_input = [](const Layer& layer) { return layer.kind == LayerKind::input; };
  const auto first = std::find_if(network_.layers.begin(), network_.layers.end(), is_input);
  if (first == network_.layers.end()) throw Error("network '{}' has no input layer; add one", network_.name);
  const auto second = std::find_if(first + 1, network_.layers.end(), is_input);
  if (second != network_.layers.end())
    throw Error("network '{}' has two input layers, '{}' and '{}'; use one and split it", network_.name, first->name,
                second->name);
  if (share_from_.valid())
    throw Error("sharing '{}' was asked for, but no layer followed", network_.layer(share_from_).name);
  check_outputs(network_);
  check_labels(network_);
  mark_frozen(network_);
  return std::move(network_);
}

}  // namespace tide
