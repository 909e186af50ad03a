// What users name as a model, and weights that come and go by other people's names.
#include <gtest/gtest.h>

#include "data/image_files.h"
#include "formats/network_json.h"
#include "formats/onnx/onnx.h"
#include "formats/safetensors.h"
#include "models/model.h"
#include "models/weights.h"
#include "network/builder.h"
#include "support/error_of.h"
#include "support/temporary_file.h"
#include "zoo/zoo.h"

namespace tide::test {
namespace {

std::string load_error(const ModelRequest& request) {
  return error_of([&] { static_cast<void>(load_model(request)); });
}

TEST(Models, OfTheZooComeWithPyTorchsNames) {
  const Model model = load_model({.model = "resnet18@7", .sample = Shape{1, 3, 64, 64}});
  EXPECT_EQ(model.network->input_sample(), (Shape{1, 3, 64, 64}));
  EXPECT_TRUE(model.values.empty());
  std::set<std::string> arrays;
  for (const WeightName& name : model.names) arrays.insert(name.array);
  EXPECT_EQ(model.names.size(), model.network->parameters.size());
  for (const char* array : {"conv1.weight", "layer1.0.bn1.running_mean", "layer4.1.conv2.weight", "fc.bias"})
    EXPECT_TRUE(arrays.contains(array)) << array;
}

TEST(Models, OfNetworkFiles) {
  const TemporaryFile file("net.json");
  const Network network = make_model("lenet");
  write_network(network, file.path());
  const Model model = load_model({.model = file.path().string()});
  EXPECT_EQ(model.network->fingerprint(), network.fingerprint());
  EXPECT_NE(load_error({.model = file.path().string(), .sample = Shape{1, 1, 8, 8}}).find("--input does not go with"),
            std::string::npos);
}

std::string export_file(const std::string& name) {
  return (std::filesystem::path(TIDE_TEST_DATA) / "foreign" / "files" / name).string();
}

TEST(Models, OfOnnxFilesComeWithTheirWeights) {
  if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files";
  const Model model = load_model({.model = export_file("residual.script.onnx")});
  EXPECT_EQ(model.names.size(), model.network->parameters.size());
  EXPECT_EQ(model.values.size(), model.network->parameters.size());
  for (const WeightName& name : model.names)
    EXPECT_EQ(model.values.at(name.parameter).size() == 12, name.array == "head.weight") << name.array;
  EXPECT_EQ(model.network->layers.back().kind, LayerKind::softmax_cross_entropy);
  const Model other = load_model({.model = export_file("residual.script.onnx"), .loss = "mean-squared-error"});
  EXPECT_EQ(other.network->layers.back().kind, LayerKind::mean_squared_error);
  const Model folded = load_model({.model = export_file("residual.fold.onnx")});
  ASSERT_FALSE(folded.notes.empty());
  EXPECT_NE(folded.notes[0].find("folded"), std::string::npos);
}

TEST(Models, OnnxFilesAreKnownByWhatTheyHold) {
  if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files";
  const TemporaryFile file("model_without_ending");
  std::filesystem::copy_file(export_file("shuffle.eval.onnx"), file.path());
  EXPECT_EQ(load_model({.model = file.path().string()}).network->input_sample(), (Shape{1, 3, 10, 10}));
  EXPECT_NE(load_error({.model = export_file("shuffle.eval.onnx"), .sample = Shape{1, 3, 11, 10}}).find("does not fit"),
            std::string::npos);
}

TEST(Models, ThatCannotBeLoadedAreNamed) {
  for (const char* name : {"model.pt", "model.pth", "pytorch_model.bin", "model.safetensors"}) {
    const std::string error = load_error({.model = name});
    EXPECT_NE(error.find("holds weights, not a network"), std::string::npos) << error;
    EXPECT_NE(error.find("--weights FILE.safetensors"), std::string::npos) << error;
  }
  EXPECT_NE(load_error({.model = "resnet51"}).find("did you mean 'resnet50'"), std::string::npos);
  EXPECT_NE(load_error({.model = "/nowhere/net.json"}).find("/nowhere/net.json"), std::string::npos);
  EXPECT_NE(load_error({.model = "/nowhere/net.onnx"}).find("/nowhere/net.onnx"), std::string::npos);
}

TEST(Models, OnnxErrorsNameTheFile) {
  if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files";
  const TemporaryFile file("unknown.onnx");
  ForeignGraph graph;
  graph.inputs = {{"x", ForeignType::f32, {-1, 3}}};
  graph.outputs = {"y"};
  graph.nodes.resize(1);
  graph.nodes[0].op = "NoSuchWord";
  graph.nodes[0].inputs = {"x"};
  graph.nodes[0].outputs = {"y"};
  write_onnx(graph, file.path());
  EXPECT_TRUE(load_error({.model = file.path().string()}).starts_with(file.path().string() + ": NoSuchWord"));
}

std::map<std::string, std::vector<float>> counted_values(const Network& network) {
  std::map<std::string, std::vector<float>> values;
  float next = 0;
  for (const Parameter& parameter : network.parameters)
    for (std::int64_t i = 0; i < parameter.shape.elements(); ++i) values[parameter.name].push_back(next += 0.25F);
  return values;
}

const Shape kSmallSample{1, 3, 32, 32};

TEST(Weights, ComeBackByTheNamesTheyWereWrittenWith) {
  for (const char* name : {"resnet18@5", "densenet121@5", "mobilenet-v3-small@5", "shufflenet-v2@5", "squeezenet@5"}) {
    const Network network = make_model(name, kSmallSample);
    const auto values = counted_values(network);
    const std::vector<WeightNames> known = weight_names(network, name);
    ASSERT_FALSE(known.empty()) << name;
    for (const WeightNames& names : known) {
      const TemporaryFile file("weights.safetensors");
      save_weights(network, names.names, values, file.path());
      const SafeTensors written = read_safetensors(file.path());
      EXPECT_EQ(written.tensors.size(), network.parameters.size());
      const LoadedWeights loaded = load_weights(network, known, file.path());
      EXPECT_EQ(loaded.values, values) << name << " by " << names.whose;
      EXPECT_TRUE(loaded.notes.empty());
    }
  }
}

TEST(Weights, HaveTheirOwnNamesWhereNobodyElseHasThem) {
  const Network network = make_model("lenet");
  const auto values = counted_values(network);
  const TemporaryFile file("own.safetensors");
  save_weights(network, {}, values, file.path());
  EXPECT_EQ(load_weights(network, {}, file.path()).values, values);
  for (const SafeTensor& tensor : read_safetensors(file.path()).tensors)
    EXPECT_TRUE(values.contains(tensor.name)) << tensor.name;
}

// A network file of an imported network, and its weights by the file's names.
TEST(Weights, OfAnImportedNetworkFitItsNetworkFile) {
  if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files";
  for (const char* name : {"residual.script.onnx", "residual.train.onnx", "mobile.eval.onnx", "segment.train.onnx"}) {
    const Model model = load_model({.model = export_file(name)});
    const TemporaryFile net("pair.json"), weights("pair.safetensors");
    write_network(*model.network, net.path());
    save_weights(*model.network, model.names, model.values, weights.path());
    const Model again = load_model({.model = net.path().string()});
    const LoadedWeights loaded = load_weights(*again.network, {}, weights.path());
    EXPECT_EQ(loaded.values, model.values) << name;
    EXPECT_TRUE(loaded.notes.empty()) << name;
  }
}

// The same model by two exporters: what one's parameters are called, the other's are.
TEST(Models, OfSeveralExportersCallTheirParametersAlike) {
  if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files";
  for (const std::string name : {"residual", "mobile", "shuffle", "segment"}) {
    std::vector<std::set<std::string>> parameters;
    for (const char* road : {"script", "train", "eval"}) {
      const Model model = load_model({.model = export_file(fmt::format("{}.{}.onnx", name, road))});
      std::set<std::string> names;
      for (const Parameter& parameter : model.network->parameters) names.insert(parameter.name);
      parameters.push_back(names);
    }
    EXPECT_EQ(parameters[0], parameters[1]) << name;
    EXPECT_EQ(parameters[0], parameters[2]) << name;
  }
}

TEST(Weights, ThatLieTheOtherWayAreRefused) {
  Builder net("product");
  net.fully_connected(net.fully_connected(net.input({1, 3}, "in"), {.channels = 5}, "fc"), {.channels = 2}, "head");
  const Network network = std::move(net).build();
  const TemporaryFile file("turned.safetensors");
  SafeTensors content;
  content.tensors = {{"fc.weight", {3, 5}, std::vector<float>(15, 1)}, {"fc.bias", {5}, std::vector<float>(5, 1)}};
  write_safetensors(file.path(), content);
  EXPECT_NE(error_of([&] {
              static_cast<void>(load_weights(network, {}, file.path()));
            }).find("'fc.weight' is 3x5, the other way round"),
            std::string::npos);
}

// In PyTorch's own shapes.
TEST(Weights, AreWrittenAsPyTorchHasThem) {
  const Network network = make_model("mobilenet-v2@4", kSmallSample);
  const TemporaryFile file("shapes.safetensors");
  save_weights(network, weight_names(network, "mobilenet-v2@4").front().names, counted_values(network), file.path());
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const SafeTensor& tensor : read_safetensors(file.path()).tensors) shapes[tensor.name] = tensor.shape;
  EXPECT_EQ(shapes.at("features.0.0.weight"), (std::vector<std::int64_t>{32, 3, 3, 3}));
  EXPECT_EQ(shapes.at("features.1.conv.0.0.weight"), (std::vector<std::int64_t>{32, 1, 3, 3}));
  EXPECT_EQ(shapes.at("features.0.1.running_var"), std::vector<std::int64_t>{32});
  EXPECT_EQ(shapes.at("classifier.1.weight"), (std::vector<std::int64_t>{4, 1280}));
}

TEST(Weights, OfOtherClassesLeaveTheHeadAnew) {
  const Network trained = make_model("resnet18@5", kSmallSample), tuned = make_model("resnet18@3", kSmallSample);
  const auto values = counted_values(trained);
  const TemporaryFile file("other_classes.safetensors");
  save_weights(trained, weight_names(trained, "resnet18@5").front().names, values, file.path());
  const LoadedWeights loaded = load_weights(tuned, weight_names(tuned, "resnet18@3"), file.path());
  EXPECT_EQ(loaded.values.size(), tuned.parameters.size() - 2);
  ASSERT_EQ(loaded.notes.size(), 1U);
  EXPECT_NE(loaded.notes[0].find("fc.weight, fc.bias start anew"), std::string::npos) << loaded.notes[0];
  for (const auto& [parameter, numbers] : loaded.values) EXPECT_EQ(numbers, values.at(parameter));
}

TEST(Weights, ThatAreMissingOrOfAnotherModelAreNamed) {
  const Network network = make_model("resnet18@5", kSmallSample);
  const std::vector<WeightNames> known = weight_names(network, "resnet18@5");
  auto values = counted_values(network);
  std::vector<WeightName> names = known.front().names;
  const TemporaryFile file("missing.safetensors");
  const auto lost = std::find_if(names.begin(), names.end(),
                                 [](const WeightName& name) { return name.array == "layer1.0.conv1.weight"; });
  ASSERT_NE(lost, names.end());
  const WeightName gone = *lost;
  names.erase(lost);
  save_weights(network, names, values, file.path());
  const std::string missing = error_of([&] { static_cast<void>(load_weights(network, known, file.path())); });
  EXPECT_NE(missing.find("has no layer1.0.conv1.weight"), std::string::npos) << missing;
  EXPECT_TRUE(missing.starts_with(file.path().string())) << missing;
  // More than the model has is said, not refused.
  SafeTensors content = read_safetensors(file.path());
  content.tensors.push_back({gone.array, {64, 64, 3, 3}, values.at(gone.parameter)});
  content.tensors.push_back({"optimizer.step", {1}, {3}});
  write_safetensors(file.path(), content);
  const LoadedWeights loaded = load_weights(network, known, file.path());
  ASSERT_EQ(loaded.notes.size(), 1U);
  EXPECT_NE(loaded.notes[0].find("not used"), std::string::npos);
  EXPECT_NE(loaded.notes[0].find("optimizer.step"), std::string::npos);
  content.tensors[0].values.pop_back();
  content.tensors[0].shape = {std::ssize(content.tensors[0].values)};
  write_safetensors(file.path(), content);
  EXPECT_NE(error_of([&] {
              static_cast<void>(load_weights(network, known, file.path()));
            }).find("name the model that the file is of"),
            std::string::npos);
}

// A header of 640 bytes begins with the two of a pickle, one of 19280 with those of a zip file.
TEST(Weights, AreNotTakenForPicklesByTheLengthOfTheirHeader) {
  Builder net("one");
  net.scale(net.input({1, 1}, "in"), {}, "s");
  const Network network = std::move(net).build();
  const auto values = counted_values(network);
  const TemporaryFile file("lengths.safetensors");
  for (const std::uint64_t length : {std::uint64_t{640}, std::uint64_t{19280}}) {
    SafeTensors content;
    save_weights(network, {}, values, file.path());
    content = read_safetensors(file.path());
    content.metadata["filler"] = "";
    write_safetensors(file.path(), content);
    std::uint64_t header = 0;
    std::ifstream(file.path(), std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
    content.metadata["filler"] = std::string(length - header, ' ');
    write_safetensors(file.path(), content);
    std::ifstream(file.path(), std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
    ASSERT_EQ(header, length);
    EXPECT_EQ(load_weights(network, {}, file.path()).values, values);
  }
}

TEST(Weights, PicklesAreNotOpenedAndCanBeConverted) {
  const Network network = make_model("lenet");
  const TemporaryFile file("checkpoint.pt");
  for (const std::string& start : {std::string("PK\3\4 and so on"), std::string("\x80\x02}q")}) {
    write_bytes(file.path(), start);
    const std::string error = error_of([&] { static_cast<void>(load_weights(network, {}, file.path())); });
    std::filesystem::path converted = file.path();
    converted.replace_extension(".safetensors");
    EXPECT_NE(error.find("can run programs when it is opened"), std::string::npos) << error;
    EXPECT_NE(error.find("\n  import torch; from safetensors.torch import save_file\n"), std::string::npos) << error;
    EXPECT_NE(error.find(fmt::format("\n  save_file(torch.load(\"{}\", weights_only=True), \"{}\")",
                                     file.path().string(), converted.string())),
              std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace tide::test
