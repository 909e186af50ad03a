#include "foreign/raise.h"

#include <algorithm>

#include "base/error.h"
#include "foreign/raiser.h"
#include "network/kind.h"

namespace tide {
namespace {

constexpr std::int64_t kOperators = 21;

}  // namespace

Raiser::Raiser(const Network& network, const std::vector<WeightName>& names,
               const std::map<std::string, std::vector<float>>& values)
    : network_(network), values_(values) {
  for (const WeightName& name : names) names_[name.parameter] = &name;
}

RaisedGraph Raiser::run() {
  result_.graph.name = network_.name;
  result_.graph.opset = kOperators;
  for (std::size_t l = 0; l < network_.layers.size(); ++l) raise(LayerId(l));
  give_outputs();
  if (drop_paths_ > 0)
    result_.notes.push_back(
        fmt::format("{} drop paths are left out, for which ONNX has no word; answers are the same", drop_paths_));
  if (frozen_norms_ > 0)
    result_.notes.push_back(
        fmt::format("{} batch norms keep their statistics in training, which the file does not say", frozen_norms_));
  return std::move(result_);
}

void Raiser::refuse(const Layer& layer, std::string_view why) {
  throw Error("layer '{}': {} is not possible in ONNX; a network file (net.json) holds it", layer.name, why);
}

void Raiser::raise(LayerId id) {
  const Layer& layer = network_.layer(id);
  switch (layer.kind) {
    case LayerKind::input: return raise_input(layer);
    case LayerKind::convolution: return raise_convolution(layer, "Conv");
    case LayerKind::transposed_convolution: return raise_convolution(layer, "ConvTranspose");
    case LayerKind::fully_connected: return raise_product(layer);
    case LayerKind::max_pool:
    case LayerKind::average_pool: return raise_pool(layer);
    case LayerKind::global_average_pool: return raise_global_average(layer);
    case LayerKind::relu: return raise_plain(layer, "Relu");
    case LayerKind::sigmoid: return raise_plain(layer, "Sigmoid");
    case LayerKind::tanh: return raise_plain(layer, "Tanh");
    case LayerKind::lrn: return raise_lrn(layer);
    case LayerKind::batch_norm: return raise_batch_norm(layer);
    case LayerKind::dropout:
      node(layer, "Dropout", {input(layer), number(layer, "ratio", layer.as<DropoutOptions>().rate)});
      return;
    case LayerKind::add: return raise_chain(layer, "Add");
    case LayerKind::multiply: return raise_chain(layer, "Mul");
    case LayerKind::concat: {
      Names inputs;
      for (std::size_t i = 0; i < layer.inputs.size(); ++i) inputs.push_back(with_rank(layer, i, layer.outputs[0]));
      node(layer, "Concat", std::move(inputs)).attributes["axis"] = std::int64_t{1};
      return;
    }
    case LayerKind::split: return raise_split(id, layer);
    case LayerKind::flatten: return raise_flatten(layer);
    case LayerKind::fork:
      for (std::size_t i = 0; i < layer.outputs.size(); ++i)
        renamed_[{id, static_cast<std::int32_t>(i)}] = input(layer);
      return;
    case LayerKind::group_norm: return raise_group_norm(layer);
    case LayerKind::activation: return raise_activation(layer);
    case LayerKind::combine: return raise_combine(layer);
    case LayerKind::scale: return raise_scale(layer);
    case LayerKind::mean: return raise_mean(layer);
    case LayerKind::adaptive_average_pool: return raise_adaptive(layer);
    case LayerKind::resize: return raise_resize(layer);
    case LayerKind::pad: return raise_pad(layer);
    case LayerKind::channel_shuffle: return raise_shuffle(layer);
    case LayerKind::transpose:
      node(layer, "Transpose", {input(layer)}).attributes["perm"] = layer.as<TransposeOptions>().axes;
      return;
    case LayerKind::reshape: {
      reshaped(layer, input(layer), sample_of(layer.outputs[0]), layer.name);
      return;
    }
    case LayerKind::drop_path:
      renamed_[{id, 0}] = input(layer);
      ++drop_paths_;
      return;
    case LayerKind::softmax:
      node(layer, "Softmax", {input(layer)}).attributes["axis"] = layer.as<SoftmaxAxisOptions>().axis;
      return;
    case LayerKind::l2_normalize: return raise_l2(layer);
    case LayerKind::softmax_cross_entropy:
    case LayerKind::sigmoid_cross_entropy:
    case LayerKind::mean_squared_error: answers_.push_back(layer.inputs[0]); return;
  }
  refuse(layer, "its kind");
}

void Raiser::give_outputs() {
  if (answers_.empty()) {
    std::vector<std::vector<bool>> read(network_.layers.size());
    for (std::size_t l = 0; l < network_.layers.size(); ++l) read[l].resize(network_.layers[l].outputs.size());
    for (const Layer& layer : network_.layers)
      for (const Value value : layer.inputs) read[value.layer.index()][static_cast<std::size_t>(value.output)] = true;
    for (std::size_t l = 0; l < network_.layers.size(); ++l)
      for (std::size_t o = 0; o < read[l].size(); ++o)
        if (!read[l][o]) answers_.push_back({LayerId(l), static_cast<std::int32_t>(o)});
  }
  for (const Value value : answers_) {
    const std::string name = name_of(value);
    auto& outputs = result_.graph.outputs;
    if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) continue;
    outputs.push_back(name);
    std::vector<std::int64_t> shape = sample_of(network_.shape(value));
    shape.insert(shape.begin(), -1);
    result_.graph.output_shapes[name] = std::move(shape);
  }
}

void Raiser::raise_input(const Layer& layer) {
  std::vector<std::int64_t> extents = sample_of(layer.outputs[0]);
  extents.insert(extents.begin(), -1);
  result_.graph.inputs.push_back({layer.name, ForeignType::f32, std::move(extents)});
}

RaisedGraph raise_graph(const NetworkPtr& network, const std::vector<WeightName>& names,
                        const std::map<std::string, std::vector<float>>& values) {
  return Raiser(*network, names, values).run();
}

}  // namespace tide
