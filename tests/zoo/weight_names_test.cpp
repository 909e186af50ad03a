#include "zoo/weight_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/hash.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

std::int64_t elements(const Network& network, const std::string& parameter) {
  for (const Parameter& other : network.parameters)
    if (other.name == parameter) return other.shape.elements();
  ADD_FAILURE() << "no parameter " << parameter;
  return 0;
}

// torch_names.txt says what make_torch_names.py saw in their models.
TEST(WeightNames, AreThoseOfPyTorchsModels) {
  std::ifstream file(std::string(TIDE_TEST_DATA) + "/zoo/torch_names.txt");
  ASSERT_TRUE(file.good());
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string whose, model, number;
    std::size_t arrays = 0;
    words >> whose >> model >> arrays >> number;
    const Network network = make_model(model);
    const std::vector<WeightNames> known = weight_names(network, model);
    ASSERT_FALSE(known.empty()) << model;
    // timm calls some models' arrays as torchvision does.
    bool found = false;
    for (const WeightNames& names : known) {
      std::vector<std::string> lines;
      for (const WeightName& name : names.names)
        lines.push_back(fmt::format("{} {}\n", name.array, elements(network, name.parameter)));
      std::sort(lines.begin(), lines.end());
      found = found || (lines.size() == arrays &&
                        fmt::format("{:016x}", fnv_of(fmt::format("{}", fmt::join(lines, "")))) == number);
    }
    EXPECT_TRUE(found) << whose << " " << model;
    // Every parameter has a name there.
    EXPECT_EQ(known.front().names.size(), network.parameters.size()) << model;
    ++rows;
  }
  EXPECT_GE(rows, 30);
}

TEST(WeightNames, TheBestMatchIsTheOneWhoseArraysAreThere) {
  const Network network = make_model("efficientnet-b0");
  const std::vector<WeightNames> known = weight_names(network, "efficientnet-b0");
  ASSERT_EQ(known.size(), 2U);
  EXPECT_EQ(best_match(known, std::vector<std::string>{"conv_stem.weight", "bn1.weight"}).whose, "timm");
  EXPECT_EQ(best_match(known, std::vector<std::string>{"features.0.0.weight"}).whose, "torchvision");
}

TEST(WeightNames, ModelsThatNobodyElseHasHaveNone) {
  for (const char* model : {"digits", "alexnet", "fcn", "lstm:1,8,1"})
    EXPECT_TRUE(weight_names(make_model(model), model).empty()) << model;
}

}  // namespace
}  // namespace tide
