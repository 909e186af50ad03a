#include "formats/network_json.h"

#include <gtest/gtest.h>

#include <fstream>

#include "network/builder.h"
#include "support/error_of.h"
#include "support/temporary_file.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

const std::string kSmall = R"({"name": "small", "layers": [
  {"kind": "softmax_cross_entropy", "name": "loss", "inputs": ["f1"]},
  {"kind": "input", "name": "in", "channels": 1, "height": 8, "width": 8},
  {"kind": "convolution", "name": "c1", "inputs": ["in"], "channels": 32, "kernel": [3, 3], "pad": [1, 1, 1, 1]},
  {"kind": "relu", "name": "r1", "inputs": ["c1"], "mirror": 2},
  {"kind": "fully_connected", "name": "f1", "inputs": ["r1"], "channels": 10, "bias": false, "frozen": true}]})";

std::string error_of(const std::string& text) {
  return test::error_of([&] { static_cast<void>(parse_network(text, "net.json")); });
}

// The small network with one piece of its text replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(NetworkJson, ReadsLayersInAnyOrder) {
  const Network network = parse_network(kSmall, "net.json");
  EXPECT_EQ(network.name, "small");
  ASSERT_EQ(network.layers.size(), 5U);
  EXPECT_EQ(network.layers[0].name, "in");
  EXPECT_EQ(network.layers[1].as<ConvolutionOptions>().window, Window::square(3, 1, 1));
  EXPECT_EQ(network.layers[2].mirror, 2);
  EXPECT_TRUE(network.layers[3].frozen);
  EXPECT_EQ(network.parameter_count(), 32 * 9 + 32 + 10 * 32 * 64);
}

TEST(NetworkJson, TheZooSurvivesARoundTrip) {
  for (const char* name :
       {"lenet",          "digits",        "alexnet",     "vgg16",        "resnet50",           "preresnet:50",
        "inception-v3",   "inception-v4",  "densenet121", "fcn",          "lstm:2,8,3",         "superneurons/resnet50",
        "resnext50",      "googlenet",     "squeezenet",  "mobilenet-v2", "mobilenet-v3-small", "efficientnet-b0",
        "regnet-y-400mf", "shufflenet-v2", "deeplab-v3",  "unet"}) {
    const Network network = make_model(name);
    const Network again = parse_network(format_network(network), "net.json");
    EXPECT_EQ(again.fingerprint(), network.fingerprint()) << name;
    EXPECT_EQ(again.name, network.name);
  }
}

TEST(NetworkJson, ActivationsHaveTheirUsualNumbersWhereTheFileHasNone) {
  const auto options_of = [](const std::string& fields) {
    const Network network = parse_network(
        with(R"("kind": "relu", "name": "r1")", R"("kind": "activation", "name": "r1", )" + fields), "net.json");
    return network.layers[2].as<ActivationOptions>();
  };
  const ActivationOptions clip = options_of(R"("function": "clip")");
  EXPECT_EQ(clip.alpha, 0);
  EXPECT_EQ(clip.beta, 6);
  const ActivationOptions softplus = options_of(R"("beta": 7, "function": "softplus")");
  EXPECT_EQ(softplus.alpha, 1);
  EXPECT_EQ(softplus.beta, 7);
  EXPECT_EQ(error_of(with(R"("kind": "relu", "name": "r1")", R"("kind": "activation", "name": "r1")")),
            "net.json, layer \"r1\": field 'function' is missing; add it");
}

TEST(NetworkJson, EveryOptionSurvivesARoundTrip) {
  Builder net("all \"options\" \xc3\xa9");
  const Value in = net.input({1, 6, 12, 10}, "in");
  const Window odd{.kernel_height = 3,
                   .kernel_width = 2,
                   .stride_height = 2,
                   .stride_width = 1,
                   .pad_top = 1,
                   .pad_left = 0,
                   .pad_bottom = 2,
                   .pad_right = 1,
                   .dilation_height = 2,
                   .dilation_width = 3};
  Value x = net.convolution(in, {.channels = 4, .window = odd, .groups = 2, .bias = false});
  x = net.transposed_convolution(x, {.channels = 6, .window = Window::square(4, 2, 1), .groups = 2});
  x = net.max_pool(x, {.window = Window::square(3, 2, 1), .round_up = true});
  x = net.average_pool(x, {.window = Window::square(2), .count_padding = true});
  x = net.lrn(x, {.size = 3, .alpha = 0.1, .beta = 1.0 / 3, .k = 1});
  x = net.batch_norm(x, {.epsilon = 1e-3, .momentum = 0.01});
  x = net.dropout(x, {.rate = 0.123456789012345});
  const std::vector<Value> parts = net.split(x, {2, 4});
  x = net.concat({parts[1], parts[0]});
  x = net.add({x, net.multiply(net.sigmoid(x), net.tanh(x))});
  x = net.freeze().fully_connected(net.flatten(net.global_average_pool(x)), {.channels = 6, .bias = false}, "f");
  const Value active = net.relu(x);
  x = net.sharing(x).fully_connected(active, {.channels = 6, .bias = false});
  net.mirror(x, 4);
  net.softmax_cross_entropy(x, {.label_smoothing = 0.1, .weight = 0.7, .label_offset = 3});
  const Network network = std::move(net).build();
  const Network again = parse_network(format_network(network), "net.json");
  EXPECT_EQ(again.fingerprint(), network.fingerprint());
  EXPECT_EQ(format_network(again), format_network(network));
}

TEST(NetworkJson, Files) {
  const test::TemporaryFile file("network.json");
  write_network(make_model("lenet"), file.path());
  EXPECT_EQ(read_network(file.path()).fingerprint(), make_model("lenet").fingerprint());
  EXPECT_THROW(static_cast<void>(read_network("/nowhere/net.json")), Error);
  EXPECT_THROW(static_cast<void>(read_network(testing::TempDir())), Error);
  EXPECT_THROW(write_network(make_model("lenet"), "/nowhere/net.json"), Error);
  std::filesystem::resize_file(file.path(), static_cast<std::uintmax_t>(kLargestNetworkFile) + 1);
  try {
    static_cast<void>(read_network(file.path()));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("at most"), std::string::npos);
  }
}

TEST(NetworkJson, ErrorsNameTheLayerAndTheField) {
  struct Case {
    std::string text, layer, message;
  };
  const std::vector<Case> cases = {
      {with("\"relu\"", "\"rulu\""), "\"r1\"", "no kind of layer \"rulu\""},
      {with("\"kind\": \"relu\", ", ""), "\"r1\"", "no kind of layer"},
      {with("\"pad\"", "\"padd\""), "\"c1\"", "unknown field \"padd\""},
      {with("\"mirror\": 2", "\"mirror\": -2"), "\"r1\"", "'mirror'"},
      {with("\"mirror\": 2", "\"mirror\": 4294967296"), "\"r1\"", "'mirror'"},
      {with("\"mirror\": 2", "\"dropout\": 2"), "\"r1\"", "\"dropout\""},
      {with("[3, 3]", "[3]"), "\"c1\"", "'kernel' must be [height, width]"},
      {with("[3, 3]", "3"), "\"c1\"", "'kernel' must be a list"},
      {with("[3, 3]", "[3, 2.5]"), "\"c1\"", "'kernel'"},
      {with("[3, 3]", "[3, 18446744073709551615]"), "\"c1\"", "'kernel'"},
      {with("\"kernel\": [3, 3], ", ""), "\"c1\"", "'kernel' is missing"},
      {with("[1, 1, 1, 1]", "[1, 1]"), "\"c1\"", "'pad' must be [top, left, bottom, right]"},
      {with("[1, 1, 1, 1]", "[1, 1, -1, 1]"), "'c1'", "negative"},
      {with("\"channels\": 32", "\"channels\": \"32\""), "\"c1\"", "'channels' must be a whole number"},
      {with("\"channels\": 32", "\"channels\": 32.5"), "\"c1\"", "'channels' must be a whole number"},
      {with("\"channels\": 32", "\"channels\": -32"), "'c1'", "-32 output channels"},
      {with("\"channels\": 32", "\"channels\": 9223372036854775807"), "'c1'", "overflow"},
      {with("\"channels\": 32", "\"channels\": 9223372036854775808"), "\"c1\"", "below 2^63"},
      {with("\"channels\": 32, ", ""), "\"c1\"", "'channels' is missing"},
      {with("\"bias\": false", "\"bias\": 0"), "\"f1\"", "'bias' must be true or false"},
      {with("[\"f1\"]", "\"f1\""), "\"loss\"", "'inputs' must be a list"},
      {with("[\"f1\"]", "[1]"), "\"loss\"", "'inputs' must be a list of texts"},
      {with("[\"f1\"]", "[\"f1\\n\"]"), "\"loss\"", "control characters"},
      {with("[\"f1\"]", "[\"f2\"]"), "'loss'", "'f2' does not exist"},
      {with("\"name\": \"r1\"", "\"name\": 7"), "layer 4", "'name' must be a text"},
      {with("\"name\": \"r1\"", "\"name\": \"r\\n1\""), "layer 4", "control characters"},
      {with("\"name\": \"r1\", ", ""), "layer 4", "no name"},
      {with("\"mirror\": 2", "\"mirror\": 2, \"mirror\": 3"), "\"mirror\"", "stands twice"},
  };
  for (const Case& test : cases) {
    const std::string text = error_of(test.text);
    EXPECT_EQ(text.rfind("net.json", 0), 0U) << text;
    EXPECT_NE(text.find(test.layer), std::string::npos) << text << " lacks " << test.layer;
    EXPECT_NE(text.find(test.message), std::string::npos) << text << " lacks " << test.message;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST(NetworkJson, OtherFiles) {
  EXPECT_NE(error_of("").find("not JSON"), std::string::npos);
  EXPECT_NE(error_of("[]").find("expected an object"), std::string::npos);
  EXPECT_NE(error_of("{}").find("'layers' is missing"), std::string::npos);
  EXPECT_NE(error_of(R"({"layers": []})").find("no input layer"), std::string::npos);
  EXPECT_NE(error_of(R"({"layers": [7]})").find("layer 1: expected an object"), std::string::npos);
  EXPECT_NE(error_of(R"({"layers": {}})").find("'layers' must be a list"), std::string::npos);
  EXPECT_NE(error_of(R"({"layers": [], "version": 2})").find("unknown field \"version\""), std::string::npos);
  EXPECT_NE(error_of("{\"name\": \"\xff\", \"layers\": []}").find("not JSON"), std::string::npos);
  EXPECT_NE(error_of(with("\"height\": 8", "\"height\": 1e999")).find("too large"), std::string::npos);
  EXPECT_NE(error_of(std::string(1 << 20, '[')).find("too early"), std::string::npos);
  EXPECT_NE(error_of("{\n\n  \"layers\": [,]}").find("line 3"), std::string::npos);
}

TEST(NetworkJson, NoPrefixOfAFileIsANetwork) {
  for (std::size_t size = 0; size < kSmall.size(); ++size) {
    const std::string text = error_of(kSmall.substr(0, size));
    EXPECT_NE(text.find("not JSON"), std::string::npos) << size << ": " << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(NetworkFiles, SamplesHaveOneToFiveExtents) {
  for (const Shape& sample : {Shape{1, 5}, Shape{1, 4, 6}, Shape{1, 5, 2, 3, 2}, Shape{1, 5, 2, 1, 3, 2}}) {
    Builder builder("any rank");
    builder.softmax_cross_entropy(builder.fully_connected(builder.tanh(builder.input(sample)), {.channels = 3}));
    const Network network = std::move(builder).build();
    const Network again = parse_network(format_network(network), "test");
    EXPECT_EQ(again.input_sample(), sample);
    EXPECT_EQ(again.fingerprint(), network.fingerprint());
  }
}

}  // namespace
}  // namespace tide
