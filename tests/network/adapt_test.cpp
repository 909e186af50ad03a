#include "network/adapt.h"

#include <gtest/gtest.h>

#include "network/builder.h"
#include "support/error_of.h"

namespace tide {
namespace {

NetworkPtr small() {
  Builder net("small");
  Value x = net.input({1, 3, 8, 8}, "data");
  x = net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "body.conv");
  x = net.batch_norm(x, {}, "body.norm");
  x = net.fully_connected(net.relu(x, "body.relu"), {.channels = 5}, "head");
  net.softmax_cross_entropy(x, {}, "loss");
  return std::make_shared<const Network>(std::move(net).build());
}

const Parameter& find(const Network& network, std::string_view name) {
  for (const Parameter& parameter : network.parameters)
    if (parameter.name == name) return parameter;
  throw Error("no parameter '{}'", name);
}

TEST(Adapt, NothingAskedChangesNothing) {
  const NetworkPtr network = small();
  EXPECT_EQ(adapt(network, {})->fingerprint(), network->fingerprint());
}

TEST(Adapt, FreezesByTheBeginningOfNames) {
  const NetworkPtr network = adapt(small(), {.freeze = {"body"}});
  EXPECT_TRUE(find(*network, "body.conv.weight").frozen);
  EXPECT_TRUE(find(*network, "body.norm.scale").frozen);
  EXPECT_FALSE(find(*network, "head.weight").frozen);
}

TEST(Adapt, TheLongestBeginningSetsTheRate) {
  const NetworkPtr network = adapt(small(), {.rates = {{"body", 0.1}, {"body.norm", 0.5}}});
  EXPECT_DOUBLE_EQ(find(*network, "body.conv.weight").rate, 0.1);
  EXPECT_DOUBLE_EQ(find(*network, "body.norm.shift").rate, 0.5);
  EXPECT_DOUBLE_EQ(find(*network, "head.weight").rate, 1);
}

TEST(Adapt, OnlyWeightsDecayWhereThatIsAsked) {
  const NetworkPtr network = adapt(small(), {.decay_weights_only = true});
  EXPECT_DOUBLE_EQ(find(*network, "body.conv.weight").decay, 1);
  EXPECT_DOUBLE_EQ(find(*network, "body.conv.bias").decay, 0);
  EXPECT_DOUBLE_EQ(find(*network, "body.norm.scale").decay, 0);
  EXPECT_DOUBLE_EQ(find(*network, "head.bias").decay, 0);
}

TEST(Adapt, LossesCompareWithWhatIsAsked) {
  const NetworkPtr network = adapt(small(), {.label_smoothing = 0.1, .soft_labels = true});
  const auto& options = network->layers.back().as<SoftmaxOptions>();
  EXPECT_DOUBLE_EQ(options.label_smoothing, 0.1);
  EXPECT_TRUE(options.soft);
  EXPECT_EQ(network->labels_per_sample(), 5);
}

TEST(Adapt, WhatFitsNoLayerIsQuoted) {
  const auto error = [](const AdaptOptions& options) {
    return test::error_of([&] { static_cast<void>(adapt(small(), options)); });
  };
  EXPECT_NE(error({.freeze = {"tail"}}).find("'tail'"), std::string::npos);
  EXPECT_NE(error({.rates = {{"tail", 2}}}).find("'tail'"), std::string::npos);
  EXPECT_NE(error({.rates = {{"head", -1}}}).find("head=-1"), std::string::npos);
  EXPECT_NE(error({.label_smoothing = 1}).find("[0, 1)"), std::string::npos);
}

}  // namespace
}  // namespace tide
