// Every policy on every network of the zoo, at inputs small enough to train a few steps:
// the memory that a run really takes is the planned peak to the byte, and what it computes
// does not depend on the policy by a single bit.
#include <gtest/gtest.h>

#include <cctype>

#include "executor/job.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct Case {
  const char* model;
  Shape sample;
  std::int64_t batch = 2;
  Rules rules = Rules::minimal;
  bool small = false;  // enough for the reference backend
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.model; }
};

void expect_same_under_all_policies(const Case& given, Backend& backend) {
  constexpr std::uint64_t kSteps = 3;
  const NetworkPtr network = test::shared_network(make_model(given.model, given.sample));
  const test::ParameterValues values = test::formula_values(*network);
  StepOptions options = test::training_step(given.batch);
  options.rules = given.rules;

  std::uint64_t baseline = 0;
  for (const Policy& policy : policies()) {
    test::Job job(test::plan_for(network, backend, policy.name, options), backend);
    job.set_state(values);
    if (policy.name == "baseline") baseline = job.state_hash();
    EXPECT_TRUE(std::isfinite(job.run_steps(kSteps))) << policy.name;
    EXPECT_EQ(job.executor().high_water(), summarize(job.plan()).peak_bytes) << policy.name;
    const std::uint64_t after = job.state_hash();
    if (policy.name == "baseline") {
      EXPECT_NE(after, baseline) << "three steps have changed nothing";
      baseline = after;
    }
    if (job.plan().numerics != Numerics::identical) continue;
    EXPECT_EQ(after, baseline) << policy.name;
  }
}

class HighWater : public testing::TestWithParam<Case> {};

TEST_P(HighWater, IsThePlannedPeakAndTheWeightsAreTheBaselines) {
  std::unique_ptr<Backend> backend = test::cpu_backend();
  if (!backend && !GetParam().small) GTEST_SKIP() << "too slow for the reference backend";
  if (!backend) backend = make_backend("reference");
  expect_same_under_all_policies(GetParam(), *backend);
}

TEST(HighWaterThreads, TwoThreadsFollowThePlanAsWell) {
  const std::unique_ptr<Backend> backend = test::cpu_backend(2);
  if (!backend) GTEST_SKIP() << "this build has no cpu backend";
  expect_same_under_all_policies({"digits", {1, 1, 8, 8}, 9}, *backend);
}

std::string case_name(const testing::TestParamInfo<Case>& row) {
  std::string name = row.param.model;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

constexpr Rules kPaper = Rules::superneurons;

INSTANTIATE_TEST_SUITE_P(Zoo, HighWater,
                         testing::Values(Case{"lenet", {1, 1, 28, 28}, 4},
                                         Case{"digits", {1, 1, 8, 8}, 3, Rules::minimal, true},
                                         Case{"digits@11", {1, 1, 8, 8}, 7, kPaper}, Case{"alexnet@10", {1, 3, 67, 67}},
                                         Case{"vgg16@10", {1, 3, 32, 32}}, Case{"resnet18@10", {1, 3, 32, 32}},
                                         Case{"resnet50@10", {1, 3, 64, 48}}, Case{"preresnet:29@10", {1, 3, 32, 32}},
                                         Case{"inception-v3@10", {1, 3, 75, 75}},
                                         Case{"densenet121@10", {1, 3, 32, 32}},
                                         Case{"lstm:2,16,4@11", {1, 24, 1, 1}, 5, Rules::minimal, true},
                                         Case{"superneurons/resnet50@10", {1, 3, 67, 67}, 2, kPaper}),
                         case_name);

// More than a hundred million parameters.
INSTANTIATE_TEST_SUITE_P(Slow, HighWater,
                         testing::Values(Case{"fcn@3", {1, 3, 32, 32}, 1}, Case{"inception-v4@10", {1, 3, 75, 75}}),
                         case_name);

}  // namespace
}  // namespace tide
