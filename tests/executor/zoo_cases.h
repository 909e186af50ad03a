// The networks of the zoo at inputs small enough to train a few steps in a test.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "base/shape.h"
#include "step/step.h"

namespace tide::test {

struct ZooCase {
  const char* model;
  Shape sample;
  std::int64_t batch = 2;
  Rules rules = Rules::minimal;
  bool small = false;  // enough for the reference backend
  friend std::ostream& operator<<(std::ostream& out, const ZooCase& c) { return out << c.model; }
};

inline std::string zoo_case_name(const testing::TestParamInfo<ZooCase>& row) {
  std::string name = row.param.model;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

// The quick ones among them.
inline auto few_zoo_cases() {
  return testing::Values(ZooCase{"lenet", {1, 1, 28, 28}, 4}, ZooCase{"digits", {1, 1, 8, 8}, 3, Rules::minimal, true},
                         ZooCase{"digits@11", {1, 1, 8, 8}, 7, Rules::superneurons},
                         ZooCase{"resnet18@10", {1, 3, 32, 32}}, ZooCase{"preresnet:29@10", {1, 3, 32, 32}},
                         ZooCase{"lstm:2,16,4@11", {1, 24, 1, 1}, 5, Rules::minimal, true});
}

inline auto zoo_cases() {
  constexpr Rules kPaper = Rules::superneurons;
  return testing::Values(ZooCase{"lenet", {1, 1, 28, 28}, 4}, ZooCase{"digits", {1, 1, 8, 8}, 3, Rules::minimal, true},
                         ZooCase{"digits@11", {1, 1, 8, 8}, 7, kPaper}, ZooCase{"alexnet@10", {1, 3, 67, 67}},
                         ZooCase{"vgg16@10", {1, 3, 32, 32}}, ZooCase{"resnet18@10", {1, 3, 32, 32}},
                         ZooCase{"resnet50@10", {1, 3, 64, 48}}, ZooCase{"preresnet:29@10", {1, 3, 32, 32}},
                         ZooCase{"inception-v3@10", {1, 3, 75, 75}}, ZooCase{"densenet121@10", {1, 3, 32, 32}},
                         ZooCase{"lstm:2,16,4@11", {1, 24, 1, 1}, 5, Rules::minimal, true},
                         ZooCase{"superneurons/resnet50@10", {1, 3, 67, 67}, 2, kPaper});
}

}  // namespace tide::test
