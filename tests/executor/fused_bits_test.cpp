// In floats, fused layers compute with the same operations in the same order as separate ones, so
// that how much a plan fuses cannot be seen in the weights.
#include <gtest/gtest.h>

#include "executor/job.h"
#include "executor/zoo_cases.h"
#include "support/on_device.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using test::ZooCase;

class FusedBits : public testing::TestWithParam<ZooCase> {};

TEST_P(FusedBits, AreThoseOfSeparateLayers) {
  const std::unique_ptr<Backend> backend = test::cpu_backend();
  if (!backend) GTEST_SKIP() << "this build has no cpu backend";
  const NetworkPtr network = test::shared_network(make_model(GetParam().model, GetParam().sample));
  const auto hash_of = [&](const char* policy, bool fuse, Bytes limit, const std::optional<Bytes>& memory) {
    StepOptions options = test::training_step(GetParam().batch);
    options.fuse = fuse;
    options.fuse_limit = limit;
    PlannerOptions planner = test::on_device();
    planner.memory[Tier::device] = memory;
    const PlanResult result = test::result_for(network, *backend, policy, options, planner);
    test::Job job(*result.plan, *backend);
    job.set_state(test::formula_values(*network));
    job.run_steps(3);
    return std::pair(job.state_hash(), summarize(job.plan()).peak[Tier::device]);
  };
  const auto [expected, peak] = hash_of("liveness", false, {}, {});
  EXPECT_EQ(hash_of("liveness", true, {}, {}).first, expected);
  EXPECT_EQ(hash_of("liveness", true, Bytes(64 << 10), {}).first, expected);  // some additions apart
  // The planner's choice, close to the fused step's floor.
  StepOptions options = test::training_step(GetParam().batch);
  options.fuse = true;
  const Bytes floor =
      test::result_for(network, *backend, "auto", options, test::on_device(Bytes(kAlignment))).floor[Tier::device];
  const Bytes memory((floor.count() + (peak.count() - std::min(floor, peak).count()) / 4) / kAlignment * kAlignment);
  EXPECT_EQ(hash_of("auto", true, {}, memory).first, expected);
}

INSTANTIATE_TEST_SUITE_P(Zoo, FusedBits,
                         testing::Values(ZooCase{"resnet18@10", {1, 3, 32, 32}}, ZooCase{"resnet50@10", {1, 3, 64, 48}},
                                         ZooCase{"preresnet:29@10", {1, 3, 32, 32}},
                                         ZooCase{"densenet121@10", {1, 3, 32, 32}}),
                         test::zoo_case_name);

}  // namespace
}  // namespace tide
