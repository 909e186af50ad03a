// Graphs in a few lines.
#pragma once

#include <cstring>

#include "foreign/graph_values.h"

namespace tide::test {

inline ForeignTensor float_tensor(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  const auto owner = std::make_shared<const std::vector<float>>(values);
  return {ForeignType::f32, std::move(shape), std::as_bytes(std::span(*owner)), owner};
}

inline ForeignTensor whole_tensor(const std::vector<std::int64_t>& values, std::vector<std::int64_t> shape) {
  const auto owner = std::make_shared<const std::vector<std::int64_t>>(values);
  return {ForeignType::i64, std::move(shape), std::as_bytes(std::span(*owner)), owner};
}

using Attributes = std::map<std::string, ForeignAttribute>;
using Extents = std::vector<std::int64_t>;

class GraphMaker {
 public:
  explicit GraphMaker(const Extents& sample = {3, 4, 5}, std::int64_t batch = -1) {
    Extents shape{batch};
    shape.insert(shape.end(), sample.begin(), sample.end());
    graph.name = "test";
    graph.inputs.push_back({"x", ForeignType::f32, shape});
  }

  // Constants. Without a name they stand in a node, as exporters write numbers of their own.
  std::string floats(const std::vector<float>& values, const Extents& shape, const std::string& name = "") {
    return constant(float_tensor(values, shape), name);
  }
  std::string whole(const Extents& values) { return constant(whole_tensor(values, {std::ssize(values)}), ""); }
  std::string number(float value) { return floats({value}, {}); }
  std::string index(std::int64_t value) { return constant(whole_tensor({value}, {}), ""); }

  // The name of its first output; the others are NAME:1 and so on.
  std::string node(const std::string& op, const std::vector<std::string>& inputs, const Attributes& attributes = {},
                   int outputs = 1) {
    ForeignNode made;
    made.name = fmt::format("{}_{}", op, graph.nodes.size());
    made.inputs = inputs;
    made.attributes = attributes;
    const std::size_t dot = op.rfind('.');
    made.op = op.substr(dot == std::string::npos ? 0 : dot + 1);
    if (dot != std::string::npos) made.domain = op.substr(0, dot);
    for (int i = 0; i < outputs; ++i) made.outputs.push_back(i == 0 ? made.name : fmt::format("{}:{}", made.name, i));
    graph.nodes.push_back(made);
    return made.name;
  }

  ForeignGraph& ends(const std::string& output) {
    graph.outputs = {output};
    return graph;
  }

  ForeignGraph graph;

 private:
  std::string constant(ForeignTensor tensor, const std::string& name) {
    if (name.empty()) return node("Constant", {}, {{"value", std::move(tensor)}});
    graph.constants.emplace(name, std::move(tensor));
    return name;
  }
};

inline ImportedNetwork imported_function(const ForeignGraph& graph) {
  return import_graph(graph, {.loss = "", .input = ""});
}

// Its result for `batch` samples.
inline std::vector<double> result_of(const ForeignGraph& graph, std::int64_t batch, const std::vector<double>& x) {
  const ImportedNetwork imported = imported_function(graph);
  return answer(imported.network, values_of(graph, imported), batch, x);
}

inline std::vector<double> some_numbers(std::size_t count, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0.1, 1.5);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = normal(generator);
  return numbers;
}

// The kinds of its layers behind the input: "convolution relu".
inline std::string kinds_of(const Network& network) {
  std::vector<std::string_view> kinds;
  for (const Layer& layer : network.layers)
    if (layer.kind != LayerKind::input) kinds.push_back(kind_name(layer.kind));
  return fmt::format("{}", fmt::join(kinds, " "));
}

}  // namespace tide::test
