#include "network/builder.h"

#include <gtest/gtest.h>

namespace tide {
namespace {

Shape pooled(const Shape& sample, const PoolOptions& options) {
  Builder net("test");
  return net.shape(net.max_pool(net.input(sample), options));
}

TEST(Shapes, OddWindows) {
  Builder net("test");
  const Value x = net.input({1, 4, 11, 7});
  // One side padded, unequal strides and dilations.
  const Window window{.kernel_height = 3,
                      .kernel_width = 2,
                      .stride_height = 2,
                      .stride_width = 3,
                      .pad_top = 1,
                      .pad_left = 0,
                      .pad_bottom = 0,
                      .pad_right = 1,
                      .dilation_height = 2,
                      .dilation_width = 3};
  EXPECT_EQ(net.shape(net.convolution(x, {.channels = 6, .window = window, .groups = 2})), (Shape{1, 6, 4, 2}));
  EXPECT_EQ(net.shape(net.transposed_convolution(x, {.channels = 6, .window = window, .groups = 2})),
            (Shape{1, 6, (11 - 1) * 2 - 1 + 2 * 2 + 1, (7 - 1) * 3 - 1 + 3 * 1 + 1}));
  // A window may be as large as the padded input, and padding larger than the input.
  EXPECT_EQ(net.shape(net.convolution(x, {.channels = 1, .window = Window::square(31, 1, 12)})), (Shape{1, 1, 5, 1}));
  EXPECT_EQ(net.shape(net.convolution(x, {.channels = 1, .window = Window::rectangle(1, 7, 0, 3)})),
            (Shape{1, 1, 11, 7}));
}

TEST(Shapes, PoolsRoundDownOrUp) {
  EXPECT_EQ(pooled({1, 1, 112, 112}, {.window = Window::square(3, 2)}), (Shape{1, 1, 55, 55}));
  EXPECT_EQ(pooled({1, 1, 112, 112}, {.window = Window::square(3, 2), .round_up = true}), (Shape{1, 1, 56, 56}));
  // Rounded up, but the last window would start in the padding behind the input.
  EXPECT_EQ(pooled({1, 1, 4, 4}, {.window = Window::square(2, 3, 1), .round_up = true}), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(pooled({1, 1, 5, 5}, {.window = Window::square(2, 3, 1), .round_up = true}), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(pooled({1, 1, 1, 9}, {.window = Window::rectangle(1, 9, 0, 0)}), (Shape{1, 1, 1, 1}));
}

TEST(Shapes, OfTheOtherLayers) {
  Builder net("test");
  const Value x = net.input({1, 6, 3, 5});
  EXPECT_EQ(net.shape(net.fully_connected(x, {.channels = 7})), (Shape{1, 7}));
  EXPECT_EQ(net.shape(net.global_average_pool(x)), (Shape{1, 6, 1, 1}));
  EXPECT_EQ(net.shape(net.flatten(x)), (Shape{1, 90}));
  const std::vector<Value> parts = net.split(x, {1, 2, 3});
  EXPECT_EQ(net.shape(parts[2]), (Shape{1, 3, 3, 5}));
  EXPECT_EQ(net.shape(net.concat({parts[2], x, parts[0]})), (Shape{1, 10, 3, 5}));
  for (const Value value : {net.relu(x), net.sigmoid(x), net.tanh(x), net.lrn(x), net.batch_norm(x), net.dropout(x),
                            net.add({x, x}), net.multiply(x, x), net.softmax_cross_entropy(x)})
    EXPECT_EQ(net.shape(value), net.shape(x));
  const LayerId fork = net.layer(LayerKind::fork, {x}, ForkOptions{3});
  EXPECT_EQ(net.so_far().layer(fork).outputs.size(), 3U);
}

TEST(Builder, NamesCountByKindAndSkipTakenOnes) {
  Builder net("test");
  const Value x = net.input({1, 1, 1, 1});
  const auto name = [&](Value value) { return net.so_far().layer(value.layer).name; };
  EXPECT_EQ(name(x), "input1");
  EXPECT_EQ(name(net.relu(x)), "relu1");
  EXPECT_EQ(name(net.relu(x, "relu2")), "relu2");
  EXPECT_EQ(name(net.relu(x)), "relu3");
  EXPECT_EQ(name(net.tanh(x)), "tanh1");
}

TEST(Builder, MakesParameters) {
  Builder net("test");
  Value x = net.input({1, 4, 8, 8});
  x = net.convolution(x, {.channels = 6, .window = Window::square(3, 1, 1), .groups = 2}, "c");
  x = net.batch_norm(x, {}, "n");
  x = net.transposed_convolution(x, {.channels = 4, .window = Window::square(4, 2, 1), .groups = 2}, "t");
  x = net.fully_connected(x, {.channels = 10}, "f");
  net.softmax_cross_entropy(x);
  const Network network = std::move(net).build();
  std::vector<std::string> names;
  for (const Parameter& parameter : network.parameters) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"c.weight", "c.bias", "n.scale", "n.shift", "n.running_mean",
                                             "n.running_variance", "t.weight", "t.bias", "f.weight", "f.bias"}));
  EXPECT_EQ(network.parameters[0].shape, (Shape{6, 2, 3, 3}));
  EXPECT_EQ(network.parameters[0].fan_in, 18);
  EXPECT_EQ(network.parameters[1].shape, Shape{6});
  EXPECT_EQ(network.parameters[6].shape, (Shape{6, 2, 4, 4}));
  EXPECT_EQ(network.parameters[6].fan_in, 12);
  EXPECT_EQ(network.parameters[8].shape, (Shape{10, 4, 16, 16}));
  EXPECT_TRUE(network.parameters[4].frozen);
  EXPECT_FALSE(network.parameters[2].frozen);
  const Layer& norm = network.layers[2];
  EXPECT_EQ(norm.parameter(ParameterRole::scale), ParameterId(2));
  EXPECT_EQ(norm.parameter(ParameterRole::running_mean), ParameterId(4));
  EXPECT_EQ(norm.parameter(ParameterRole::running_variance), ParameterId(5));
  EXPECT_FALSE(norm.parameter(ParameterRole::weight).valid());
  EXPECT_EQ(network.parameter_count(), 6 * 18 + 6 + 12 + 6 * 32 + 4 + 10240 + 10);
}

TEST(Builder, SharesParametersButNotStatistics) {
  Builder net("test");
  const Value x = net.input({1, 4, 1, 1});
  const Value a = net.batch_norm(net.fully_connected(x, {.channels = 4}, "a"), {}, "na");
  const Value b = net.sharing({LayerId(1)}).fully_connected(a, {.channels = 4}, "b");
  net.softmax_cross_entropy(net.sharing(a).batch_norm(b, {}, "nb"));
  const Network network = std::move(net).build();
  EXPECT_EQ(network.layers[1].parameters, network.layers[3].parameters);
  EXPECT_EQ(network.layers[2].parameters, network.layers[4].parameters);
  EXPECT_NE(network.layers[2].statistics, network.layers[4].statistics);
  EXPECT_EQ(network.parameter_count(), 16 + 4 + 8);
}

TEST(Builder, AParameterIsFrozenIfAllItsLayersAre) {
  Builder net("test");
  Value x = net.input({1, 4, 1, 1});
  const Value a = net.freeze().fully_connected(x, {.channels = 4}, "frozen");
  const Value b = net.fully_connected(a, {.channels = 4}, "half");
  const Value c = net.freeze(false).sharing(b).fully_connected(b, {.channels = 4}, "other half");
  net.softmax_cross_entropy(c);
  const Network network = std::move(net).build();
  EXPECT_TRUE(network.layers[1].frozen);
  EXPECT_TRUE(network.parameters[0].frozen);
  EXPECT_TRUE(network.layers[2].frozen);
  EXPECT_FALSE(network.parameters[2].frozen);
  EXPECT_FALSE(network.layers[3].frozen);
}

TEST(Builder, Mirrors) {
  Builder net("test");
  const Value x = net.relu(net.input({1, 4, 1, 1}));
  net.mirror(x, 2);
  EXPECT_EQ(net.so_far().layer(x.layer).mirror, 2);
}

TEST(Network, LabelsAndClasses) {
  Builder net("test");
  const Value x = net.input({1, 5, 2, 3});
  net.softmax_cross_entropy(x, {.label_offset = 10});
  net.softmax_cross_entropy(x);
  const Network network = std::move(net).build();
  EXPECT_TRUE(network.has_loss());
  EXPECT_EQ(network.classes(), 5);
  EXPECT_EQ(network.labels_per_sample(), 16);
  EXPECT_EQ(network.input_sample(), (Shape{1, 5, 2, 3}));

  Builder inference("test");
  inference.relu(inference.input({1, 5, 2, 3}));
  const Network without = std::move(inference).build();
  EXPECT_FALSE(without.has_loss());
  EXPECT_EQ(without.classes(), 0);
  EXPECT_EQ(without.labels_per_sample(), 0);
}

TEST(Network, FingerprintChangesWithEverything) {
  const auto made = [](const ConvolutionOptions& options, const std::string& name, double rate, bool frozen) {
    Builder net("test");
    const Value x = net.freeze(frozen).convolution(net.input({1, 4, 9, 9}), options, name);
    net.softmax_cross_entropy(net.dropout(x, {.rate = rate}));
    return std::move(net).build();
  };
  const ConvolutionOptions options{.channels = 4, .window = Window::square(3, 1, 1)};
  ConvolutionOptions dilated = options;
  dilated.window.dilation_width = 2, dilated.window.pad_left = 2, dilated.window.pad_right = 2;
  const std::uint64_t first = made(options, "c", 0.5, false).fingerprint();
  EXPECT_EQ(made(options, "c", 0.5, false).fingerprint(), first);
  EXPECT_NE(made(options, "d", 0.5, false).fingerprint(), first);
  EXPECT_NE(made(options, "c", 0.25, false).fingerprint(), first);
  EXPECT_NE(made(options, "c", 0.5, true).fingerprint(), first);
  EXPECT_NE(made(dilated, "c", 0.5, false).fingerprint(), first);
  Network renamed = made(options, "c", 0.5, false);
  renamed.name = "other";
  EXPECT_EQ(renamed.fingerprint(), first);
}

TEST(Builder, DepthIsNoLimit) {
  Builder net("deep");
  Value x = net.input({1, 2, 2, 2});
  for (int i = 0; i < 100'000; ++i) x = net.relu(x);
  net.softmax_cross_entropy(x);
  const Network network = std::move(net).build();
  EXPECT_EQ(network.layers.size(), 100'002U);
}

}  // namespace
}  // namespace tide
