// Parameters that rest in host memory: when, which, and what it does to the floor.
#include "planner/search/resting.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/draft/resting_storages.h"
#include "planner/finish/floor.h"
#include "planner/policy.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

class RestingPlans : public testing::Test {
 protected:
  static Step step(std::string_view model, std::int64_t batch, bool training = true) {
    return build_step(std::make_shared<Network>(make_model(std::string(model))),
                      {.batch = batch, .training = training});
  }
  [[nodiscard]] PlanResult plan(const Step& step, Parameters parameters, std::optional<Bytes> memory = {},
                                std::string_view policy = "superneurons") const {
    PlannerOptions options = within(memory);
    options.parameters = parameters;
    return make_plan(find_policy(policy), step, cost_, options);
  }
  // At the bottom of each tier when the step starts.
  static Bytes persistent_bytes(const Plan& plan, Tier tier) {
    Bytes total;
    const Phase& phase = plan.phases.front();
    for (const Residency& r : phase.residencies)
      if (r.first == kEntry && r.tier == tier && phase.step->storage(r.storage).persistent)
        total += aligned_bytes(phase, r);
    return total;
  }

  RooflineModel cost_{generic_cpu()};
};

TEST_F(RestingPlans, TheFloorNoLongerGrowsWithDepth) {
  const Bytes tiny(kAlignment);
  for (const std::string_view policy : {"superneurons", "offload"}) {
    const Bytes shallow_device = plan(step("resnet:3,4,6,3", 1), Parameters::device, tiny, policy).floor[Tier::device];
    const Bytes deep_device = plan(step("resnet:3,4,36,3", 1), Parameters::device, tiny, policy).floor[Tier::device];
    const Bytes shallow_host = plan(step("resnet:3,4,6,3", 1), Parameters::host, tiny, policy).floor[Tier::device];
    const Bytes deep_host = plan(step("resnet:3,4,36,3", 1), Parameters::host, tiny, policy).floor[Tier::device];
    const double device_growth = static_cast<double>((deep_device - shallow_device).count());
    const double host_growth = static_cast<double>((deep_host - shallow_host).count());
    EXPECT_GT(device_growth, 30 * 2 * 4.0e6) << policy;     // 1.1 million parameters a block, and their momentum
    EXPECT_LT(host_growth, 0.2 * device_growth) << policy;  // what offload keeps of activations
  }
}

TEST_F(RestingPlans, TheFloorIsFeasible) {
  const Step original = step("resnet50", 2);
  for (const std::string_view policy : {"superneurons", "offload"}) {
    const PlanResult refused = plan(original, Parameters::host, Bytes(kAlignment), policy);
    ASSERT_FALSE(refused.plan);
    EXPECT_FALSE(plan(original, Parameters::host, refused.floor[Tier::device] - Bytes(kAlignment), policy).plan);
    const PlanResult made = plan(original, Parameters::host, refused.floor[Tier::device], policy);
    ASSERT_TRUE(made.plan) << policy;
    EXPECT_LE(summarize(*made.plan).peak[Tier::device], refused.floor[Tier::device]);
  }
}

TEST_F(RestingPlans, SmallThingsAndMetricsStayOnTheDevice) {
  const PlanResult made = plan(step("resnet50", 2), Parameters::host);
  const Phase& phase = made.plan->phases.front();
  Bytes parameters;
  for (const Residency& r : phase.residencies) {
    const Storage& storage = phase.step->storage(r.storage);
    if (r.first != kEntry || !storage.persistent) continue;
    const bool rests = r.tier == Tier::host;
    EXPECT_EQ(rests, storage.tensor_class != TensorClass::metric && storage.bytes.count() > 64 * 1024);
    if (rests) parameters += storage.bytes;
  }
  EXPECT_GT(parameters.count(), 2 * 25'000'000LL * 4 * 98 / 100);  // nearly all, and their momentum
}

TEST_F(RestingPlans, AutomaticallyOnlyWhereTheDeviceIsShort) {
  const Step original = step("resnet50", 2);
  const Bytes all = summarize(*plan(original, Parameters::device).plan).peak[Tier::device];
  EXPECT_TRUE(summarize(*plan(original, Parameters::device).plan).resting_bytes.is_zero());
  EXPECT_TRUE(persistent_bytes(*plan(original, Parameters::automatic).plan, Tier::host).is_zero());
  EXPECT_TRUE(persistent_bytes(*plan(original, Parameters::automatic, all).plan, Tier::host).is_zero());
  const Bytes floor = plan(original, Parameters::device, Bytes(kAlignment)).floor[Tier::device];
  const PlanResult short_of_it = plan(original, Parameters::automatic, floor - Bytes(kAlignment));
  ASSERT_TRUE(short_of_it.plan);
  EXPECT_FALSE(persistent_bytes(*short_of_it.plan, Tier::host).is_zero());
  EXPECT_EQ(summarize(*short_of_it.plan).resting_bytes, persistent_bytes(*short_of_it.plan, Tier::host));
  // What it calls the smallest budget is the smallest.
  const PlanResult refused = plan(original, Parameters::automatic, Bytes(kAlignment));
  ASSERT_FALSE(refused.plan);
  EXPECT_EQ(refused.floor[Tier::device], plan(original, Parameters::host, Bytes(kAlignment)).floor[Tier::device]);
  EXPECT_TRUE(plan(original, Parameters::automatic, refused.floor[Tier::device]).plan);
}

TEST_F(RestingPlans, EvaluationFindsThemInTheSamePlaces) {
  const PlanResult training = plan(step("resnet50", 4), Parameters::host, Bytes(256 << 20));
  PlanningContext options = within(Bytes(256 << 20));
  options.rest_in_host = rest_in_host(*training.plan);
  const PlanResult evaluation = make_plan(find_policy("superneurons"), step("resnet50", 2, false), cost_, options);
  const auto places = [](const Plan& plan) {
    std::vector<std::tuple<StorageId, Tier, Bytes>> found;
    for (const Residency& r : plan.phases.front().residencies)
      if (r.first == kEntry && plan.phases.front().step->storage(r.storage).persistent)
        found.emplace_back(r.storage, r.tier, r.address);
    std::sort(found.begin(), found.end());
    for (std::size_t k = 0; k < found.size(); ++k) std::get<0>(found[k]) = StorageId(k);  // in table order
    return found;
  };
  EXPECT_EQ(places(*training.plan), places(*evaluation.plan));
  // Nothing changes there, so nothing goes back.
  EXPECT_TRUE(summarize(*evaluation.plan).offloaded_bytes.is_zero());
  EXPECT_FALSE(summarize(*evaluation.plan).prefetched_bytes.is_zero());
}

TEST_F(RestingPlans, EachNewValueGoesBackOnce) {
  const PlanResult made = plan(step("resnet50", 2), Parameters::host);
  const Phase& phase = made.plan->phases.front();
  std::vector<int> out(phase.step->storages.size(), 0);
  for (const Op& op : phase.ops)
    if (op.is_copy() && op.copy().to == Tier::host) ++out[op.copy().storage.index()];
  for (const Residency& r : phase.residencies)
    EXPECT_TRUE(r.first != kEntry || r.tier != Tier::host || out[r.storage.index()] == 1);
}

TEST_F(RestingPlans, CopiesRunBesideComputation) {
  // A link that needs three quarters of the time to carry everything in.
  const Step original = step("resnet50", 16);
  const double ideal = ideal_seconds(original, cost_);
  Device device = generic_cpu();
  const Bytes moved = summarize(*plan(original, Parameters::host).plan).prefetched_bytes;
  device.link_bytes_per_second = static_cast<double>(moved.count()) / (0.75 * ideal);
  const RooflineModel model(device);
  PlannerOptions options = within(Bytes(4LL << 30));
  options.parameters = Parameters::host;
  const PlanResult made = make_plan(find_policy("superneurons"), original, model, options);
  EXPECT_LT(simulate(*made.plan, model).seconds, 1.15 * ideal);
}

TEST_F(RestingPlans, HostMemoryCounts) {
  const Step original = step("resnet50", 2);
  PlanningContext options = within(Bytes(128 << 20));
  options.memory[Tier::host] = Bytes(100 << 20);
  options.parameters = Parameters::host;
  const PlanResult refused = make_plan(find_policy("superneurons"), original, cost_, options);
  EXPECT_FALSE(refused.plan);
  EXPECT_EQ(refused.short_of, Tier::host);
  EXPECT_GT(refused.floor[Tier::host], Bytes(190 << 20));
  options.memory[Tier::host] = refused.floor[Tier::host];
  EXPECT_TRUE(make_plan(find_policy("superneurons"), original, cost_, options).plan);
}

TEST_F(RestingPlans, PoliciesThatDoNotMoveThingsSaySo) {
  const Step original = step("lenet", 2);
  for (const std::string_view policy : {"baseline", "inplace", "sharing", "liveness"}) {
    EXPECT_THROW(static_cast<void>(plan(original, Parameters::host, {}, policy)), Error) << policy;
    EXPECT_TRUE(plan(original, Parameters::automatic, {}, policy).plan) << policy;
  }
}

}  // namespace
}  // namespace tide
