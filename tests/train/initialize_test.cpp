#include "train/initialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "network/builder.h"

namespace tide {
namespace {

Network wide_network() {
  Builder net("wide");
  Value x = net.input({1, 8, 6, 6});
  x = net.convolution(x, {.channels = 256, .window = Window::square(5, 1, 2)}, "conv");
  x = net.batch_norm(x, {}, "norm");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 9}, "fc"));
  return std::move(net).build();
}

std::size_t index_of(const Network& network, const std::string& name) {
  for (std::size_t p = 0; p < network.parameters.size(); ++p)
    if (network.parameters[p].name == name) return p;
  throw Error("there is no parameter '{}'", name);
}

std::vector<float> values_of(const Network& network, const std::string& name, std::uint64_t seed = 1) {
  return initial_values(network, ParameterId(index_of(network, name)), seed);
}

double mean_power(const std::vector<float>& values, int power) {
  double sum = 0;
  for (const float value : values) sum += std::pow(static_cast<double>(value), power);
  return sum / static_cast<double>(values.size());
}

// Deviations are a few times those that chance allows at this count; the seed is fixed.
TEST(Initialize, WeightsAreNormalWithVarianceTwoOverFanIn) {
  const Network network = wide_network();
  for (const auto& [name, fan_in] :
       std::vector<std::pair<std::string, double>>{{"conv.weight", 8 * 25}, {"fc.weight", 256 * 36}}) {
    const std::vector<float> values = values_of(network, name);
    const auto count = static_cast<double>(values.size());
    ASSERT_GT(count, 50000);
    const double variance = 2 / fan_in, deviation = std::sqrt(variance);
    EXPECT_NEAR(mean_power(values, 1), 0, 4 * deviation / std::sqrt(count)) << name;
    EXPECT_NEAR(mean_power(values, 2), variance, 4 * variance * std::sqrt(2 / count)) << name;
    EXPECT_NEAR(mean_power(values, 4), 3 * variance * variance, 4 * variance * variance * std::sqrt(96 / count))
        << name;
    // Two thirds lie within one deviation, a few far outside.
    const auto within = [&](double limit) {
      return static_cast<double>(
                 std::count_if(values.begin(), values.end(),
                               [&](float v) { return std::abs(static_cast<double>(v)) < limit * deviation; })) /
             count;
    };
    EXPECT_NEAR(within(1), 0.6827, 0.01);
    EXPECT_LT(within(3), 1);
    EXPECT_EQ(within(6), 1);
  }
}

TEST(Initialize, NeighboursAreNotCorrelated) {
  const std::vector<float> values = values_of(wide_network(), "conv.weight");
  for (const std::size_t lag : {1U, 2U, 3U, 4U, 25U}) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < values.size(); ++i)
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i + lag]);
    EXPECT_NEAR(sum / static_cast<double>(values.size()) * 100, 0, 4 / std::sqrt(static_cast<double>(values.size())))
        << lag;
  }
}

TEST(Initialize, EverythingElseIsZeroOrOne) {
  const Network network = wide_network();
  const std::vector<std::pair<std::string, float>> constants = {{"conv.bias", 0.0F},
                                                                {"norm.scale", 1.0F},
                                                                {"norm.shift", 0.0F},
                                                                {"norm.running_mean", 0.0F},
                                                                {"norm.running_variance", 1.0F}};
  for (const auto& [name, expected] : constants) {
    const std::vector<float> values = values_of(network, name);
    EXPECT_EQ(values, std::vector<float>(values.size(), expected)) << name;
    EXPECT_GE(values.size(), 9U);
  }
}

TEST(Initialize, DependsOnSeedAndParameterAlone) {
  const Network network = wide_network();
  EXPECT_EQ(values_of(network, "conv.weight"), values_of(wide_network(), "conv.weight"));
  EXPECT_NE(values_of(network, "conv.weight", 1), values_of(network, "conv.weight", 2));
  const std::vector<float> one = values_of(network, "conv.weight"), other = values_of(network, "fc.weight");
  EXPECT_FALSE(std::equal(one.begin(), one.begin() + 100, other.begin()));
}

// So that a checkpoint-free run can be repeated by any later version.
TEST(Initialize, TheFirstValuesNeverChange) {
  const std::vector<float> values = values_of(wide_network(), "conv.weight", 7);
  // Made by another implementation of Philox and Box-Muller.
  EXPECT_NEAR(values[0], 0.126948594, 1e-8);
  EXPECT_NEAR(values[1], -0.028626642, 1e-8);
  EXPECT_NEAR(values[2], 0.135314572, 1e-8);
}

}  // namespace
}  // namespace tide
