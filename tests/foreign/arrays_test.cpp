// Which arrays of a graph layers share, and what layers are called after the arrays that they have.
#include <gtest/gtest.h>

#include <set>

#include "foreign/graph_maker.h"
#include "support/error_of.h"

namespace tide::test {
namespace {

std::vector<float> floats_of(std::size_t count, unsigned seed) {
  const std::vector<double> numbers = some_numbers(count, seed);
  return {numbers.begin(), numbers.end()};
}

std::string convolution(GraphMaker& m, const std::string& x, const std::string& weight, const std::string& bias = "") {
  if (!m.graph.constants.contains(weight))
    m.floats(floats_of(9, static_cast<unsigned>(m.graph.constants.size())), {3, 3, 1, 1}, weight);
  if (!bias.empty() && !m.graph.constants.contains(bias)) m.floats({0, 0, 0}, {3}, bias);
  return m.node("Conv", bias.empty() ? std::vector{x, weight} : std::vector{x, weight, bias});
}

std::string norm(GraphMaker& m, const std::string& x, const std::vector<std::string>& arrays, float value = 1) {
  std::vector<std::string> inputs{x};
  for (const std::string& array : arrays) {
    if (!m.graph.constants.contains(array)) m.floats({value, 1, 1}, {3}, array);
    inputs.push_back(array);
  }
  return m.node("BatchNormalization", inputs);
}

std::vector<std::string> norm_arrays(const std::string& module) {
  return {module + ".weight", module + ".bias", module + ".running_mean", module + ".running_var"};
}

// Behind the input.
std::vector<std::string> layer_names(const Network& network) {
  std::vector<std::string> names;
  for (const Layer& layer : network.layers)
    if (layer.kind != LayerKind::input) names.push_back(layer.name);
  return names;
}

std::vector<std::string> array_names(const ImportedNetwork& imported) {
  std::vector<std::string> names;
  for (const WeightName& weight : imported.weights) names.push_back(weight.array);
  return names;
}

using Names = std::vector<std::string>;

TEST(MergedArrays, ABiasOfSeveralLayersIsEachOnesOwn) {
  GraphMaker maker;
  const std::string first = convolution(maker, "x", "onnx::Conv_1", "onnx::Conv_2");
  const ForeignGraph& graph = maker.ends(convolution(maker, first, "onnx::Conv_3", "onnx::Conv_2"));
  EXPECT_NE(error_of([&] { static_cast<void>(imported_function(graph)); }).find("all of their parameters or none"),
            std::string::npos);

  maker.graph.merged = true;
  const ImportedNetwork imported = imported_function(graph);
  EXPECT_EQ(imported.network->parameters.size(), 4U);
  EXPECT_EQ(layer_names(*imported.network), (Names{"Conv_0", "Conv_1"}));
  // The first has the name; what goes out again has every name once.
  EXPECT_EQ(array_names(imported), (Names{"onnx::Conv_1", "onnx::Conv_2", "onnx::Conv_3", "Conv_1.bias"}));
  EXPECT_EQ(values_of(graph, imported).at("Conv_1.bias"), (std::vector<float>{0, 0, 0}));
  // Beside what is said of the fold.
  bool said = false;
  for (const std::string& note : imported.notes)
    said = said || note.find("one array for several layers ('onnx::Conv_2')") != std::string::npos;
  EXPECT_TRUE(said) << fmt::format("{}", fmt::join(imported.notes, "\n"));
}

TEST(MergedArrays, LayersThatShareAllOfTheirsShareThem) {
  for (const bool merged : {false, true}) {
    GraphMaker maker;
    maker.graph.merged = merged;
    const std::string first = convolution(maker, "x", "conv.weight", "conv.bias");
    const ImportedNetwork imported =
        imported_function(maker.ends(convolution(maker, first, "conv.weight", "conv.bias")));
    EXPECT_EQ(imported.network->parameters.size(), 2U);
    EXPECT_EQ(layer_names(*imported.network), (Names{"conv", "Conv_1"}));
    ASSERT_EQ(imported.notes.size(), 1U);
    EXPECT_NE(imported.notes[0].find("'conv' and 'Conv_1' use the same 'conv.weight'"), std::string::npos);
  }
}

// All of a fresh batch norm is equal to all of another one.
TEST(MergedArrays, ThatAreFreshFromConstructorsAreNotShared) {
  GraphMaker maker;
  maker.graph.merged = true;
  const Names arrays{"a.weight", "a.bias", "a.bias", "a.weight"};
  const std::string first = norm(maker, "x", arrays);
  const ForeignGraph& graph = maker.ends(norm(maker, first, arrays));
  const ImportedNetwork imported = imported_function(graph);
  EXPECT_EQ(imported.network->parameters.size(), 8U);
  const Names names = array_names(imported);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 8U);
  for (const auto& [name, values] : values_of(graph, imported))
    EXPECT_EQ(values, (std::vector<float>{1, 1, 1})) << name;
}

TEST(MergedArrays, TrainedNormsThatAreSharedHaveStatisticsOfTheirOwn) {
  GraphMaker maker;
  maker.graph.merged = true;
  const std::string first = norm(maker, "x", norm_arrays("bn"), 2);
  const ImportedNetwork imported = imported_function(maker.ends(norm(maker, first, norm_arrays("bn"))));
  EXPECT_EQ(array_names(imported),
            (Names{"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", "BatchNormalization_1.running_mean",
                   "BatchNormalization_1.running_variance"}));
}

// A small file could ask for much memory.
TEST(MergedArrays, AreCopiedOnlySoOften) {
  GraphMaker maker({1, 4, 5});
  maker.graph.merged = true;
  maker.floats(std::vector<float>(20000, 0.5F), {20000, 1, 1, 1}, "first");
  maker.floats(std::vector<float>(20000, 0.5F), {20000}, "bias");
  std::string sum = "x";
  for (int i = 0; i < 40; ++i) {
    const std::string y = maker.node("Conv", {"x", "first", "bias"});
    sum =
        maker.node("Add", {sum, maker.node("ReduceMean", {y}, {{"axes", Extents{1}}, {"keepdims", std::int64_t{1}}})});
  }
  EXPECT_NE(error_of([&] { static_cast<void>(imported_function(maker.ends(sum))); }).find("the whole model times"),
            std::string::npos);
}

TEST(LayerNames, AreThoseOfTheModulesThatTheArraysAreOf) {
  GraphMaker maker;
  std::string y = convolution(maker, "x", "features.0.0.weight");
  y = norm(maker, y, norm_arrays("features.0.1"));
  y = maker.node("Relu", {y});
  y = convolution(maker, y, "features.1.weight", "features.1.bias");
  y = convolution(maker, y, "folded.weight", "folded.weight_bias");
  y = convolution(maker, y, "onnx::Conv_7", "onnx::Conv_8");
  const ImportedNetwork imported = imported_function(maker.ends(y));
  EXPECT_EQ(layer_names(*imported.network),
            (Names{"features.0.0", "features.0.1", "Relu_2", "features.1", "folded", "Conv_5"}));
}

TEST(LayerNames, AreTheNodesWhereTheArraysAreOfSeveralModulesOrTurned) {
  GraphMaker maker({4});
  std::string y = maker.node("MatMul", {"x", maker.floats(floats_of(12, 1), {4, 3}, "turned.weight")});
  y = maker.node("Gemm", {y, maker.floats(floats_of(6, 2), {2, 3}, "a.weight"), maker.floats({1, 2}, {2}, "b.bias")},
                 {{"transB", std::int64_t{1}}});
  y = maker.node("Gemm", {y, maker.floats(floats_of(6, 3), {3, 2}, "c.weight")}, {{"transB", std::int64_t{1}}});
  const ImportedNetwork imported = imported_function(maker.ends(y));
  EXPECT_EQ(layer_names(*imported.network), (Names{"MatMul_0", "Gemm_1", "c"}));
}

TEST(LayerNames, AreFreeForTheModuleWhatOtherNodesAreCalled) {
  GraphMaker maker;
  std::string y = maker.node("Relu", {"x"});
  maker.graph.nodes.back().name = "conv";
  const ImportedNetwork imported = imported_function(maker.ends(convolution(maker, y, "conv.weight")));
  EXPECT_EQ(layer_names(*imported.network), (Names{"conv_2", "conv"}));
}

TEST(LayerNames, LeaveTheInputsAsTheyAre) {
  GraphMaker maker;
  const ImportedNetwork imported = imported_function(maker.ends(convolution(maker, "x", "x.weight")));
  EXPECT_EQ(imported.network->layers[0].name, "x");
  EXPECT_EQ(layer_names(*imported.network), Names{"Conv_0"});
}

}  // namespace
}  // namespace tide::test
