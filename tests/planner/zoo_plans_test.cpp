// Every policy on every network of the zoo: valid by the checker (make_plan insists),
// ordered as they should be, and packed closely.
#include <gtest/gtest.h>

#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "support/on_device.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct ZooCase {
  const char* model;
  std::int64_t batch;
};

class ZooPlans : public testing::TestWithParam<ZooCase> {
 protected:
  static Step step(Rules rules, bool training) {
    static const std::shared_ptr<Network> none;
    return build_step(std::make_shared<Network>(make_model(GetParam().model)),
                      {.batch = GetParam().batch, .rules = rules, .training = training, .optimizer = {}});
  }
  static PlanResult plan(std::string_view policy, Step step, const PlannerOptions& options = {}) {
    return make_plan(find_policy(policy), std::move(step), RooflineModel(generic_cpu()), options);
  }
};

TEST_P(ZooPlans, PoliciesSaveMoreAndMore) {
  for (const Rules rules : {Rules::minimal, Rules::superneurons}) {
    for (const bool training : {true, false}) {
      const Step original = step(rules, training);
      const Bytes baseline = plan("baseline", original).floor[Tier::device];
      const Bytes inplace = plan("inplace", original).floor[Tier::device];
      const Bytes sharing = plan("sharing", original).floor[Tier::device];
      const Bytes liveness = plan("liveness", original).floor[Tier::device];
      EXPECT_LE(inplace, baseline);
      EXPECT_LE(sharing, inplace);
      EXPECT_LE(liveness, sharing);
    }
  }
}

TEST_P(ZooPlans, PeakAddressIsWithinOnePercentOfTheLargestLiveSum) {
  for (const Rules rules : {Rules::minimal, Rules::superneurons}) {
    for (const bool training : {true, false}) {
      const PlanResult result = plan("liveness", step(rules, training));
      const PlanSummary summary = summarize(*result.plan);
      EXPECT_LE(static_cast<double>(summary.peak[Tier::device].count()),
                1.01 * static_cast<double>(summary.peak_live_bytes.count()))
          << GetParam().model << " " << rules_name(rules) << (training ? " training" : " inference");
    }
  }
}

TEST_P(ZooPlans, FloorIsExact) {
  const Step original = step(Rules::minimal, true);
  for (const Policy& policy : policies()) {
    const PlanResult unlimited = plan(policy.name, original);
    const PlanResult exact = plan(policy.name, original, test::on_device(unlimited.floor[Tier::device]));
    ASSERT_TRUE(exact.plan) << policy.name;
    EXPECT_EQ(summarize(*exact.plan).peak[Tier::device], unlimited.floor[Tier::device]);
    const PlanResult below =
        plan(policy.name, original, test::on_device(unlimited.floor[Tier::device] - Bytes(kAlignment)));
    EXPECT_FALSE(below.plan) << policy.name;
    EXPECT_EQ(below.floor[Tier::device], unlimited.floor[Tier::device]);
    EXPECT_FALSE(below.bottleneck_task.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooPlans,
                         testing::Values(ZooCase{"lenet", 64}, ZooCase{"digits", 64}, ZooCase{"alexnet", 200},
                                         ZooCase{"vgg16", 32}, ZooCase{"vgg19", 32}, ZooCase{"vgg101", 8},
                                         ZooCase{"resnet18", 32}, ZooCase{"resnet34", 32}, ZooCase{"resnet50", 32},
                                         ZooCase{"resnet101", 32}, ZooCase{"resnet152", 16},
                                         ZooCase{"resnet:6,32,60,6", 16}, ZooCase{"preresnet:164", 32},
                                         ZooCase{"inception-v3", 32}, ZooCase{"inception-v4", 32},
                                         ZooCase{"densenet121", 32}, ZooCase{"fcn", 16}, ZooCase{"lstm:4,256,16", 64},
                                         ZooCase{"superneurons/resnet50", 32}, ZooCase{"superneurons/resnet101", 32},
                                         ZooCase{"superneurons/resnet152", 32}),
                         [](const auto& row) {
                           std::string name = row.param.model;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace tide
