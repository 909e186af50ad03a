// Every policy on every network of the zoo, at inputs small enough to train a few steps:
// the memory that a run really takes is the planned peak to the byte, and what it computes
// does not depend on the policy by a single bit.
#include <gtest/gtest.h>

#include "executor/job.h"
#include "executor/zoo_cases.h"
#include "planner/policy.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using test::ZooCase;

void expect_same_under_all_policies(const ZooCase& given, Backend& backend) {
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
    EXPECT_EQ(job.executor().high_water(), summarize(job.plan()).peak[Tier::device]) << policy.name;
    const std::uint64_t after = job.state_hash();
    if (policy.name == "baseline") {
      EXPECT_NE(after, baseline) << "three steps have changed nothing";
      baseline = after;
    }
    if (job.plan().numerics != Numerics::identical) continue;
    EXPECT_EQ(after, baseline) << policy.name;
  }
}

class HighWater : public testing::TestWithParam<ZooCase> {};

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

INSTANTIATE_TEST_SUITE_P(Zoo, HighWater, test::zoo_cases(), test::zoo_case_name);

// More than a hundred million parameters.
INSTANTIATE_TEST_SUITE_P(Slow, HighWater,
                         testing::Values(ZooCase{"fcn@3", {1, 3, 32, 32}, 1},
                                         ZooCase{"inception-v4@10", {1, 3, 75, 75}}),
                         test::zoo_case_name);

}  // namespace
}  // namespace tide
