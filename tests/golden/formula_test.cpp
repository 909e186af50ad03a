// The zoo's models have the parameters of the references, and formula.h their values.
#include "golden/formula.h"

#include <gtest/gtest.h>

#include "golden/reference.h"
#include "zoo/zoo.h"

namespace tide::golden {
namespace {

TEST(Golden, Formula) {
  EXPECT_EQ(name_key(""), 0xcbf29ce484222325U);
  EXPECT_EQ(name_key("a"), 0xaf63dc4c8601ec8cU);  // from the authors of FNV
  EXPECT_EQ(hash(0, 0), 0xe220a8397b1dcdafU);     // the first number of splitmix64 with seed 0
  const std::vector<double> powers = {1, 2, 4, 8, 16, 32, 64, 128};
  const std::array<double, 4> products = {-129, 89, 71, 59};  // from make_reference.py
  EXPECT_EQ(summarize<double>("x", powers).products, products);
}

class GoldenModel : public testing::TestWithParam<const char*> {};

TEST_P(GoldenModel, HasTheParametersOfTheReference) {
  const Reference reference = read_reference(TIDE_TEST_DATA, GetParam());
  const Network network = make_model(reference.model, reference.sample);
  std::size_t trained = 0, statistics = 0;
  for (const Parameter& parameter : network.parameters) {
    if (parameter.role == ParameterRole::running_mean || parameter.role == ParameterRole::running_variance) {
      EXPECT_TRUE(reference.statistics.contains(parameter.name)) << parameter.name;
      ++statistics;
      continue;
    }
    ++trained;
    const auto norm = reference.parameter_norms.find(parameter.name);
    ASSERT_NE(norm, reference.parameter_norms.end()) << parameter.name;
    const std::vector<float> values = parameter_values(parameter);
    const Summary summary = summarize<float>(parameter.name, values);
    EXPECT_NEAR(summary.norm, norm->second, 1e-10 * norm->second) << parameter.name;
  }
  EXPECT_EQ(trained, reference.gradients.size());
  EXPECT_EQ(statistics, reference.statistics.size());
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel,
                         testing::Values("resnet50.json", "inception_v3.json", "densenet121.json", "lstm.json"));

}  // namespace
}  // namespace tide::golden
