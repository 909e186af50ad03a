// Every network of the zoo through network files and through ONNX graphs.
#include <gtest/gtest.h>

#include "foreign/graph_step.h"
#include "foreign/raise.h"
#include "formats/network_json.h"
#include "formats/onnx/onnx.h"
#include "models/model.h"
#include "support/temporary_file.h"
#include "zoo/weight_names.h"
#include "zoo/zoo.h"

namespace tide::test {
namespace {

struct ZooEntry {
  std::string name;
  std::optional<Shape> sample;
  friend std::ostream& operator<<(std::ostream& out, const ZooEntry& entry) { return out << entry.name; }
};

// As small as the model can be: what is compared does not depend on it.
std::vector<ZooEntry> zoo_entries() {
  std::vector<ZooEntry> entries;
  for (const ModelInfo& info : models()) {
    std::string name = info.name;
    if (name == "resnet:A,B,C,D") name = "resnet:1,2,1,1";
    if (name == "preresnet:DEPTH") name = "preresnet:29";
    if (name == "lstm:LAYERS,HIDDEN,STEPS") name = "lstm:2,5,3";
    std::optional<Shape> sample;
    if (info.sample.channels() == 3) {
      const bool deep = name.starts_with("inception");
      const std::int64_t side = deep ? 139 : name == "alexnet" ? 99 : 64;
      sample = Shape{1, 3, side, side};
    }
    entries.push_back({name + (name.starts_with("lstm") ? "" : "@6"), sample});
  }
  return entries;
}

std::string entry_name(const testing::TestParamInfo<ZooEntry>& entry) {
  std::string name = entry.param.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

// What exporting may change: layers that move nothing, and those that only training has.
bool is_kept(LayerKind kind) {
  switch (kind) {
    case LayerKind::flatten:
    case LayerKind::reshape:
    case LayerKind::fork:
    case LayerKind::drop_path: return false;
    default: return true;
  }
}

std::vector<const Layer*> kept_layers(const Network& network) {
  std::vector<const Layer*> kept;
  for (const Layer& layer : network.layers)
    if (is_kept(layer.kind)) kept.push_back(&layer);
  return kept;
}

// Layers come back as the modules that their arrays are called after.
std::string name_behind(const Network& network, const Layer& layer, const std::vector<WeightName>& names) {
  for (const LayerParameter& used : layer.parameters)
    for (const WeightName& name : names)
      if (name.parameter == network.parameters[used.id.index()].name)
        return name.array.substr(0, name.array.rfind('.'));
  return layer.name;
}

class ZooRoundTrip : public testing::TestWithParam<ZooEntry> {
 protected:
  NetworkPtr network_ = std::make_shared<const Network>(make_model(GetParam().name, GetParam().sample));
};

TEST_P(ZooRoundTrip, AsANetworkFile) {
  const Network again = parse_network(format_network(*network_), "net.json");
  EXPECT_EQ(again.fingerprint(), network_->fingerprint());
  EXPECT_EQ(again.parameters.size(), network_->parameters.size());
}

TEST_P(ZooRoundTrip, AsAnOnnxGraph) {
  std::vector<WeightName> names;
  if (const auto known = weight_names(*network_, GetParam().name); !known.empty()) names = known.front().names;
  ParameterValues values;
  for (const Parameter& parameter : network_->parameters)
    values[parameter.name].resize(static_cast<std::size_t>(parameter.shape.elements()), 0.5F);
  const RaisedGraph raised = raise_graph(network_, names, values);
  const ImportedNetwork again = import_graph(raised.graph, {.loss = "", .input = ""});
  if (raised.graph.outputs.size() > 1) {
    // All of its answers go out; the first comes back, which is said.
    ASSERT_EQ(again.notes.size(), 1U);
    EXPECT_NE(again.notes[0].find("left out"), std::string::npos);
    return;
  }
  const std::vector<const Layer*> before = kept_layers(*network_), behind = kept_layers(*again.network);
  // Losses are not a part of such files.
  std::vector<const Layer*> wanted;
  for (const Layer* layer : before)
    if (!is_loss(*layer)) wanted.push_back(layer);
  ASSERT_EQ(behind.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(behind[i]->kind, wanted[i]->kind) << wanted[i]->name;
    EXPECT_EQ(behind[i]->outputs, wanted[i]->outputs) << wanted[i]->name;
    EXPECT_EQ(behind[i]->name, name_behind(*network_, *wanted[i], names));
    LayerOptions options = behind[i]->options;  // random numbers are drawn by a layer's own stream
    if (std::int64_t* const stream = random_stream(options)) *stream = *random_stream(wanted[i]->options);
    EXPECT_TRUE(equal_options(options, wanted[i]->options)) << wanted[i]->name;
  }
  // The same arrays by the same names, all of them.
  std::set<std::string> arrays, arrays_again;
  for (const Parameter& parameter : network_->parameters) arrays.insert(parameter.name);
  for (const WeightName& name : names) arrays.erase(name.parameter), arrays.insert(name.array);
  for (const WeightName& name : again.weights) arrays_again.insert(name.array);
  EXPECT_EQ(arrays_again, arrays);
  EXPECT_EQ(again.network->parameter_count(), network_->parameter_count());
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooRoundTrip, testing::ValuesIn(zoo_entries()), entry_name);

// The numbers, too: through the file, by what the double interpreter says of the same inputs.
class ZooAnswers : public testing::TestWithParam<ZooEntry> {};

TEST_P(ZooAnswers, AreTheSameFromAnOnnxFile) {
  if (!has_onnx()) GTEST_SKIP() << "this build writes no ONNX files";
  const auto network = std::make_shared<const Network>(make_model(GetParam().name, GetParam().sample));
  std::vector<WeightName> names;
  if (const auto known = weight_names(*network, GetParam().name); !known.empty()) names = known.front().names;
  const ParameterValues values = random_values(*network, 2);
  const TemporaryFile file("zoo.onnx");
  write_onnx(raise_graph(network, names, values).graph, file.path());
  const Model again = load_model({.model = file.path().string()});
  const std::vector<double> x = random_batch(*network, 2, 9);
  EXPECT_LE(relative_difference(answer(again.network, again.values, 2, x), answer(network, values, 2, x)), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooAnswers,
                         testing::Values(ZooEntry{"digits", {}}, ZooEntry{"lenet", {}}, ZooEntry{"lstm:2,5,1", {}},
                                         ZooEntry{"squeezenet@5", Shape{1, 3, 32, 32}},
                                         ZooEntry{"shufflenet-v2@5", Shape{1, 3, 32, 32}},
                                         ZooEntry{"mobilenet-v3-small@5", Shape{1, 3, 32, 32}},
                                         ZooEntry{"efficientnet-b0@5", Shape{1, 3, 32, 32}},
                                         ZooEntry{"preresnet:14@5", Shape{1, 3, 32, 32}}),
                         entry_name);

}  // namespace
}  // namespace tide::test
