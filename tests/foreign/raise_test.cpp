// Every kind of layer there and back: what a graph of ONNX's words answers is what the network answers.
#include "foreign/raise.h"

#include <gtest/gtest.h>

#include "backend/network_cases.h"
#include "foreign/graph_values.h"
#include "support/error_of.h"

namespace tide::test {
namespace {

class RaiseTest : public testing::TestWithParam<NetworkCase> {};

TEST_P(RaiseTest, ComesBackAsTheSameFunction) {
  const NetworkPtr network = GetParam().network();
  const ParameterValues values = random_values(*network, 3);
  RaisedGraph raised;
  const std::string refused = error_of([&] { raised = raise_graph(network, {}, values); });
  if (!refused.empty()) {
    // Averages over windows of different sizes, and a softplus that has a corner, are what ONNX has no word for.
    EXPECT_TRUE(GetParam().name.starts_with("adaptive") || GetParam().name == "function_softplus_steep") << refused;
    EXPECT_NE(refused.find("is not possible in ONNX"), std::string::npos) << refused;
    return;
  }
  const ImportedNetwork imported = import_graph(raised.graph, {.loss = "", .input = ""});
  const std::vector<double> x = random_batch(*network, GetParam().batch, 5);
  const std::vector<double> wanted = answer(network, values, GetParam().batch, x);
  const std::vector<double> seen = answer(imported.network, values_of(raised.graph, imported), GetParam().batch, x);
  ASSERT_EQ(seen.size(), wanted.size());
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    difference += (seen[i] - wanted[i]) * (seen[i] - wanted[i]);
    length += wanted[i] * wanted[i];
  }
  EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(length));  // constants are floats in a graph
}

INSTANTIATE_TEST_SUITE_P(Cases, RaiseTest, testing::ValuesIn(all_cases()),
                         [](const auto& entry) { return entry.param.name; });

TEST(Raise, NamesAreTheUsersAndFrozenOnesAreSaid) {
  Builder net("named");
  Value x = net.freeze().convolution(net.input({1, 3, 8, 8}, "in"), {.channels = 4}, "conv");
  x = net.freeze(false).fully_connected(x, {.channels = 5}, "head");
  net.softmax_cross_entropy(x);
  const auto network = std::make_shared<const Network>(std::move(net).build());
  std::vector<WeightName> names;
  for (const Parameter& parameter : network->parameters)
    names.push_back({parameter.name, "module." + parameter.name, {}, {}});
  const RaisedGraph raised = raise_graph(network, names, random_values(*network, 1));
  for (const WeightName& name : names) EXPECT_TRUE(raised.graph.constants.contains(name.array)) << name.array;
  EXPECT_EQ(raised.graph.frozen.size(), 2U);
  EXPECT_EQ(raised.graph.outputs, std::vector<std::string>{"head"});
  EXPECT_EQ(raised.graph.output_shapes.at("head"), (std::vector<std::int64_t>{-1, 5}));
  EXPECT_EQ(raised.graph.inputs.at(0).shape, (std::vector<std::int64_t>{-1, 3, 8, 8}));
}

TEST(Raise, AParameterWithoutValuesIsNamed) {
  Builder net("empty");
  net.convolution(net.input({1, 3, 8, 8}, "in"), {.channels = 4}, "conv");
  const auto network = std::make_shared<const Network>(std::move(net).build());
  EXPECT_NE(error_of([&] { static_cast<void>(raise_graph(network, {}, {})); }).find("'conv."), std::string::npos);
}

}  // namespace
}  // namespace tide::test
