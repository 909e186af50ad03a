#include "data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

namespace tide {
namespace {

struct Sample {
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  friend auto operator<=>(const Sample&, const Sample&) = default;
};

Sample read(const Dataset& data, std::int64_t index) {
  Sample sample{std::vector<float>(static_cast<std::size_t>(data.sample().per_sample())),
                std::vector<std::int32_t>(static_cast<std::size_t>(data.labels_per_sample()))};
  data.read(index, sample.values, sample.labels);
  return sample;
}

TEST(Digits, AreThoseOfTheUciTestSet) {
  const DatasetPtr data = digits();
  EXPECT_EQ(data->size(), 1797);
  EXPECT_EQ(data->sample(), (Shape{1, 1, 8, 8}));
  EXPECT_EQ(data->classes(), 10);
  EXPECT_EQ(data->labels_per_sample(), 1);
  std::array<int, 10> counts{};
  double sum = 0;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    const Sample sample = read(*data, i);
    ++counts.at(static_cast<std::size_t>(sample.labels[0]));
    for (const float value : sample.values) {
      ASSERT_GE(value, -1.0F);
      ASSERT_LE(value, 1.0F);
      sum += static_cast<double>(value + 1) * 8;
    }
  }
  EXPECT_EQ(counts, (std::array<int, 10>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}));
  EXPECT_EQ(sum, 561718);  // of all pixels, 0..16
}

TEST(Digits, TheFirstIsAZero) {
  const Sample sample = read(*digits(), 0);
  EXPECT_EQ(sample.labels[0], 0);
  const std::array<float, 8> row{0, 0, 5, 13, 9, 1, 0, 0};
  for (std::size_t i = 0; i < row.size(); ++i) EXPECT_EQ(sample.values[i], row[i] / 8 - 1);
}

TEST(Synthetic, IsReproducibleNoise) {
  const SyntheticOptions options{.sample = {1, 3, 5, 7}, .classes = 4, .labels_per_sample = 6, .size = 200, .seed = 3};
  const DatasetPtr data = synthetic(options), again = synthetic(options);
  SyntheticOptions other = options;
  other.seed = 4;
  EXPECT_EQ(data->size(), 200);
  EXPECT_EQ(data->sample(), options.sample);
  EXPECT_NE(read(*data, 0), read(*synthetic(other), 0));
  std::set<Sample> seen;
  std::array<int, 4> counts{};
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    const Sample sample = read(*data, i);
    EXPECT_EQ(sample, read(*again, i));
    EXPECT_TRUE(seen.insert(sample).second) << "sample " << i << " is not new";
    for (const std::int32_t label : sample.labels) ++counts.at(static_cast<std::size_t>(label));
    for (const float value : sample.values) {
      ASSERT_GE(value, -1.0F);
      ASSERT_LT(value, 1.0F);
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  const double count = 200.0 * 105;
  EXPECT_NEAR(sum / count, 0, 4 * std::sqrt(1.0 / 3 / count));
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.01);
  for (const int classes : counts) EXPECT_NEAR(classes, 300, 4 * std::sqrt(300 * 0.75));
}

TEST(Shuffle, IsAPermutationThatDependsOnSeedAndEpoch) {
  for (const std::int64_t size : {0, 1, 2, 3, 1000}) {
    std::vector<std::int64_t> order = shuffled(size, 5, 2);
    EXPECT_EQ(order, shuffled(size, 5, 2));
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
  EXPECT_NE(shuffled(1000, 5, 2), shuffled(1000, 5, 3));
  EXPECT_NE(shuffled(1000, 5, 2), shuffled(1000, 6, 2));
}

// Every position gets every value equally often (chi-squared).
TEST(Shuffle, IsUniform) {
  constexpr std::int64_t kSize = 6;
  constexpr std::uint64_t kEpochs = 6000;
  std::array<std::array<int, kSize>, kSize> counts{};
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<std::int64_t> order = shuffled(kSize, 9, epoch);
    for (std::size_t i = 0; i < order.size(); ++i) ++counts.at(i).at(static_cast<std::size_t>(order[i]));
  }
  double chi_squared = 0;
  for (const auto& row : counts)
    for (const int count : row) chi_squared += std::pow(count - 1000.0, 2) / 1000.0;
  EXPECT_LT(chi_squared, 52.6);  // 25 degrees of freedom, one in a thousand
}

TEST(Subset, ReadsTheChosenSamples) {
  const DatasetPtr part = subset(digits(), {5, 3, 5}, "some");
  EXPECT_EQ(part->size(), 3);
  EXPECT_EQ(part->name(), "some");
  EXPECT_EQ(part->classes(), 10);
  EXPECT_EQ(read(*part, 0), read(*digits(), 5));
  EXPECT_EQ(read(*part, 1), read(*digits(), 3));
}

// All samples of a part, sorted.
std::vector<Sample> contents(const Dataset& data) {
  std::vector<Sample> all;
  for (std::int64_t i = 0; i < data.size(); ++i) all.push_back(read(data, i));
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Split, PartsAreDisjointAndComplete) {
  const DatasetPtr whole = digits();
  const Split parts = split(whole, 0.2, 1);
  EXPECT_EQ(parts.validation->size(), 359);
  EXPECT_EQ(parts.train->size(), 1438);
  std::vector<Sample> both = contents(*parts.train);
  for (const Sample& sample : contents(*parts.validation)) both.push_back(sample);
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, contents(*whole));
}

TEST(Split, DependsOnTheSeedAlone) {
  EXPECT_EQ(contents(*split(digits(), 0.2, 1).validation), contents(*split(digits(), 0.2, 1).validation));
  EXPECT_NE(contents(*split(digits(), 0.2, 1).validation), contents(*split(digits(), 0.2, 2).validation));
}

TEST(Split, NothingHeldOutIsNoValidationSet) {
  const Split parts = split(digits(), 0, 1);
  EXPECT_EQ(parts.validation, nullptr);
  EXPECT_EQ(parts.train->size(), 1797);
}

TEST(Split, RefusesFractionsThatAreNone) {
  for (const double fraction : {-0.1, 1.0, 1.5, std::nan("")})
    EXPECT_THROW(static_cast<void>(split(digits(), fraction, 1)), Error);
}

}  // namespace
}  // namespace tide
