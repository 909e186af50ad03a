// moDNN: its memory list, its Algorithm 1 within any budget, its sub-batches. Every plan here has
// passed the checker.
#include "planner/policies/modnn.h"

#include <gtest/gtest.h>

#include <set>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/draft/in_place.h"
#include "planner/finish/floor.h"
#include "planner/modnn/batch.h"
#include "planner/modnn/memory_list.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "planner/runtime/runtime.h"
#include "step/build.h"
#include "support/on_device.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

// The paper's Figure 4: block (4) may not leave, and 4 are asked for. The text names the two schemes; the
// sizes are such that there are no others.
class Figure4 : public testing::Test {
 protected:
  Figure4() {
    std::int64_t address = 0;
    for (std::size_t block = 1; block <= 6; ++block) {
      memory_.take(StorageId(block), Bytes(address), Bytes(kSizes[block - 1]));
      address += kSizes[block - 1];
    }
  }
  static bool may_leave(StorageId block) { return block != StorageId(4); }

  static constexpr std::int64_t kSizes[] = {2, 2, 1, 2, 3, 1};
  MemoryList memory_{Bytes(11), 7};
};

TEST_F(Figure4, FindsTwoSchemes) {
  EXPECT_FALSE(memory_.find_free(Bytes(4), MemoryList::End::low, 0));
  std::vector<std::vector<StorageId>> found;
  memory_.each_scheme(Bytes(4), may_leave, [&](const MemoryList::Range& range) {
    EXPECT_GE(range.bytes, Bytes(4));
    found.emplace_back(range.blocks.begin(), range.blocks.end());
  });
  EXPECT_EQ(found, (std::vector<std::vector<StorageId>>{{StorageId(1), StorageId(2)}, {StorageId(5), StorageId(6)}}));
}

TEST_F(Figure4, TakesTheOneThatDelaysLeast) {
  for (const std::size_t slow : {std::size_t{2}, std::size_t{5}}) {
    const auto scheme = memory_.best_scheme(Bytes(4), may_leave, [&](const MemoryList::Range& range) {
      const bool delayed = std::find(range.blocks.begin(), range.blocks.end(), StorageId(slow)) != range.blocks.end();
      MemoryList::Scheme judged;
      judged.address = range.address;
      judged.bytes = range.bytes;
      judged.delay = delayed ? 1 : 0;
      judged.copied = delayed ? 0 : 4;  // counts only where the delay is the same
      return judged;
    });
    ASSERT_TRUE(scheme);
    EXPECT_EQ(scheme->blocks.front(), StorageId(slow == 2 ? 5 : 1));
    EXPECT_EQ(scheme->address, Bytes(slow == 2 ? 7 : 0));
  }
}

TEST_F(Figure4, FreeNeighboursCountAndGrowTogether) {
  memory_.release(StorageId(3), 0, 0);
  std::vector<std::vector<StorageId>> found;
  memory_.each_scheme(Bytes(5), may_leave, [&](const MemoryList::Range& range) {
    found.emplace_back(range.blocks.begin(), range.blocks.end());
  });
  EXPECT_EQ(found, (std::vector<std::vector<StorageId>>{{StorageId(1), StorageId(2)}}));
  memory_.release(StorageId(2), 0, 0);
  EXPECT_EQ(memory_.find_free(Bytes(3), MemoryList::End::low, 0)->address, Bytes(2));
  EXPECT_EQ(memory_.segments().size(), 5U);
  // What is not out of use yet is free all the same, later.
  memory_.release(StorageId(1), 2.0, 1.0);
  EXPECT_EQ(memory_.segments().size(), 5U);
  EXPECT_EQ(memory_.find_free(Bytes(3), MemoryList::End::low, 1.0)->address, Bytes(2));
  EXPECT_EQ(memory_.find_free(Bytes(5), MemoryList::End::low, 1.0)->ready, 2.0);
  EXPECT_EQ(memory_.free(), Bytes(5));
}

class Modnn : public testing::Test {
 protected:
  Step part(const NetworkPtr& network, std::int64_t samples, Part part) const {
    StepOptions options;
    options.batch = samples;
    options.part = part;
    Step step = build_step(network, options);
    annotate_for(step, device_);
    return step;
  }
  Step step(std::string_view model, std::int64_t batch) const {
    return part(std::make_shared<Network>(make_model(model)), batch, Part::whole);
  }
  // That may cut the batches of a network, whatever it does to the numbers.
  PlanningContext cutting(const NetworkPtr& network) const {
    PlanningContext options = test::on_device();
    options.cut = [this, network](std::int64_t samples, Part kind) { return part(network, samples, kind); };
    options.batch = SubBatches{.allowed = Numerics::changed};
    return options;
  }
  PlanResult plan(std::string_view policy, const Step& step, const PlanningContext& options) const {
    return make_plan(find_policy(policy), step, cost_, options);
  }
  static PlanningContext within(Bytes memory) { return test::on_device(memory); }
  static Bytes between(Bytes low, Bytes high, int part, int parts) {
    return low + Bytes((high - low).count() / parts * part);
  }
  Device device_ = find_device("k40m").rates();
  DeviceModel cost_{device_};
};

// Copies of each storage by direction, and how often its value was made anew in between.
TEST_F(Modnn, WhatWasCopiedOutOnceIsOnlyFreedTheNextTime) {
  const Step original = step("resnet50", 16);
  const Bytes floor = plan("modnn", original, {}).floor[Tier::device],
              ideal = plan("liveness", original, {}).floor[Tier::device];
  int again = 0;  // fetches of what had been fetched before
  for (int part = 0; part < 4; ++part) {
    const PlanResult result = plan("modnn", original, within(between(floor, ideal, part, 20)));
    ASSERT_TRUE(result.plan);
    const Phase& phase = result.plan->phases.front();
    std::set<StorageId> outside, fetched;  // copied out, and since then not written
    for (const Op& op : phase.ops) {
      if (op.is_copy() && op.lane == Lane::out) {
        EXPECT_TRUE(outside.insert(op.copy().storage).second);
      }
      if (op.is_copy() && op.lane == Lane::in && !fetched.insert(op.copy().storage).second) ++again;
      if (!op.is_run()) continue;
      for (const Operand& operand : phase.step->operands_of(op.run().task))
        if (operand.access != Access::read) {
          outside.erase(phase.step->tensor(operand.tensor).storage);
          fetched.erase(phase.step->tensor(operand.tensor).storage);
        }
    }
  }
  EXPECT_GT(again, 0);
}

TEST_F(Modnn, NothingMovesWhereEverythingFits) {
  const Step original = step("vgg16", 32);
  const PlanSummary summary = summarize(*plan("modnn", original, within(Bytes(64LL << 30))).plan);
  EXPECT_EQ(summary.offloaded_bytes + summary.prefetched_bytes, Bytes());
}

// By the simulator: with one lane, no two copies at a time; with two there are.
TEST_F(Modnn, CopiesTakeTurnsOnOneLane) {
  const Step original = step("resnet50", 32);
  const Bytes floor = plan("modnn", original, {}).floor[Tier::device],
              ideal = plan("liveness", original, {}).floor[Tier::device];
  PlanningContext options = within(between(floor, ideal, 1, 20));
  int together[2] = {0, 0};
  double seconds[2] = {0, 0};
  for (const bool one_lane : {false, true}) {
    options.policy.set<ModnnOptions>().one_lane = one_lane;
    const Plan made = *plan("modnn", original, options).plan;
    const Timeline timeline = simulate(made, cost_);
    const Phase& phase = made.phases.front();
    for (std::size_t a = 0; a < phase.ops.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (phase.ops[a].is_copy() && phase.ops[b].is_copy() && timeline.spans[a].start < timeline.spans[b].end &&
            timeline.spans[b].start < timeline.spans[a].end)
          ++together[one_lane ? 1 : 0];
    seconds[one_lane ? 1 : 0] = timeline.seconds;
  }
  EXPECT_GT(together[0], 0);
  EXPECT_EQ(together[1], 0);
  EXPECT_GT(seconds[1], seconds[0]);
}

// Equation 2, by hand.
TEST_F(Modnn, FloorIsWhatPersistsAndTheLargestTaskOfOneSample) {
  const auto network = std::make_shared<Network>(make_model("vgg16"));
  const PlanningContext options = cutting(network);
  const Floor floor = modnn_floor(part(network, 64, Part::whole), cost_, options);
  // Weights, gradients and momentum; conv1_2 reads and writes 64 x 224 x 224.
  const std::int64_t persistent = 3 * 4 * 138'357'544LL, largest = 2 * 4 * 64 * 224 * 224;
  EXPECT_NEAR(static_cast<double>(floor.bytes.count()), static_cast<double>(persistent + largest), 64 * 256.0);
  EXPECT_EQ(floor.task, "conv1_2 forward");
  // It is enough, and the least.
  PlanningContext within = options;
  within.memory[Tier::device] = floor.bytes;
  const PlanResult exact = plan("modnn", part(network, 64, Part::whole), within);
  ASSERT_TRUE(exact.plan);
  EXPECT_EQ(exact.floor[Tier::device], floor.bytes);
  EXPECT_EQ(summarize(*exact.plan).rounds, 64);
  EXPECT_EQ(exact.plan->numerics, Numerics::reordered);
  within.memory[Tier::device] = floor.bytes - Bytes(kAlignment);
  EXPECT_FALSE(plan("modnn", part(network, 64, Part::whole), within).plan);
}

// Equation 3: this many samples fit, one more does not.
TEST_F(Modnn, SubBatchIsTheLargestThatFits) {
  const auto network = std::make_shared<Network>(make_model("vgg16"));
  PlanningContext options = cutting(network);
  options.in_place = false;
  const Step whole = part(network, 256, Part::whole);
  const auto needed = [&](std::int64_t samples) {
    const Step round = part(network, samples, Part::later_round);
    return persistent_bytes(round) + largest_fast_task(round, cost_);
  };
  for (const std::int64_t gibibytes : {2, 3, 5, 7}) {
    options.memory[Tier::device] = Bytes(gibibytes << 30);
    const std::int64_t samples = modnn_sub_batch(whole, cost_, options);
    ASSERT_GT(samples, 1);
    ASSERT_LT(samples, 255);
    EXPECT_LE(needed(samples), *options.memory[Tier::device]);
    EXPECT_GT(needed(samples + 1), *options.memory[Tier::device]);
  }
  options.memory[Tier::device] = Bytes(1LL << 40);
  EXPECT_EQ(modnn_sub_batch(whole, cost_, options), 256);
  options.memory[Tier::device] = persistent_bytes(part(network, 1, Part::later_round));
  EXPECT_EQ(modnn_sub_batch(whole, cost_, options), 1);
  EXPECT_EQ(evened(256, 100), 86);
  EXPECT_EQ(evened(10, 4), 4);
  EXPECT_EQ(evened(7, 7), 7);
}

TEST_F(Modnn, CutsOnlyWhereTheNumbersMayChangeSoFar) {
  for (const char* model : {"vgg16", "resnet34"}) {
    const auto network = std::make_shared<Network>(make_model(model));
    const Step whole = part(network, 32, Part::whole);
    const Numerics needed = model == std::string_view("vgg16") ? Numerics::reordered : Numerics::changed;
    PlanningContext options = cutting(network);
    const Bytes floor = modnn_floor(whole, cost_, options).bytes;
    for (const char* policy : {"modnn", "vdnn+"}) {
      for (const Numerics allowed : {Numerics::identical, Numerics::reordered, Numerics::changed}) {
        options.batch = SubBatches{.allowed = allowed};
        options.memory[Tier::device].reset();
        const Bytes least = plan(policy, whole, options).floor[Tier::device];
        options.memory[Tier::device] = least;
        const PlanResult result = plan(policy, whole, options);
        ASSERT_TRUE(result.plan) << model << " " << policy;
        EXPECT_LE(result.plan->numerics, allowed);
        EXPECT_EQ(summarize(*result.plan).rounds > 1, allowed >= needed) << model << " " << policy;
        EXPECT_EQ(policy == std::string_view("modnn") && least == floor,
                  policy == std::string_view("modnn") && allowed >= needed);
      }
    }
  }
}

// With the statistics of the whole batch there are no rounds, but one step that works on sub-batches.
TEST_F(Modnn, CutsStepsWithExactBatchNorm) {
  const auto network = std::make_shared<Network>(make_model("resnet18"));
  const Step whole = part(network, 16, Part::whole);
  PlanningContext options;
  options.batch = SubBatches{.exact_batch_norm = true};
  options.cut = [&](std::int64_t samples, Part kind) {
    EXPECT_EQ(kind, Part::whole);
    StepOptions cut;
    cut.batch = 16;
    cut.sub_batch = samples;
    Step step = build_step(network, cut);
    annotate_for(step, device_);
    return step;
  };
  const Bytes floor = plan("modnn", whole, options).floor[Tier::device];
  EXPECT_LT(floor, smallest_floor(merge_in_place(whole)).bytes);
  bool cut = false;
  for (const std::int64_t percent : {100, 105, 120, 150, 300}) {
    options.memory[Tier::device] = Bytes(floor.count() * percent / 100);
    const PlanResult result = plan("modnn", whole, options);
    ASSERT_TRUE(result.plan) << percent;
    EXPECT_LE(summarize(*result.plan).peak[Tier::device], *options.memory[Tier::device]);
    EXPECT_LE(result.plan->numerics, Numerics::reordered);
    cut = cut || sub_batch_of(*result.plan) < 16;
  }
  EXPECT_TRUE(cut);
  options.memory[Tier::device] = floor - Bytes(1);
  EXPECT_FALSE(plan("modnn", whole, options).plan);
}

// Networks of every kind of layer, from the floor up.
TEST_F(Modnn, CutsAnyNetwork) {
  int cut = 0, moving = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const NetworkPtr network = testing_support::random_network(seed);
    const std::int64_t batch = 1 + seed % 7;
    const Step whole = part(network, batch, Part::whole);
    PlanningContext options = cutting(network);
    options.in_place = seed % 3 != 0;
    for (const char* policy : {"modnn", "vdnn+"}) {
      options.memory[Tier::device].reset();
      const PlanResult unlimited = plan(policy, whole, options);
      for (const std::int64_t percent : {100, 101, 110, 130, 170}) {
        options.memory[Tier::device] = Bytes(unlimited.floor[Tier::device].count() * percent / 100);
        const PlanResult result = plan(policy, whole, options);
        ASSERT_TRUE(result.plan) << policy << " seed " << seed << " at " << percent;
        EXPECT_EQ(result.floor[Tier::device], unlimited.floor[Tier::device]) << policy << " seed " << seed;
        const PlanSummary summary = summarize(*result.plan);
        EXPECT_LE(summary.peak[Tier::device], *options.memory[Tier::device]);
        cut += summary.rounds > 1 ? 1 : 0;
        moving += summary.offloaded_bytes.is_zero() ? 0 : 1;
      }
      options.memory[Tier::device] = unlimited.floor[Tier::device] - Bytes(1);
      EXPECT_FALSE(plan(policy, whole, options).plan) << policy << " seed " << seed;
    }
  }
  EXPECT_GT(cut, 100);
  EXPECT_GT(moving, 100);
}

struct ModnnCase {
  const char* model;
  std::int64_t batch;
};

class ModnnBudgets : public Modnn, public testing::WithParamInterface<ModnnCase> {
 protected:
  // From the smallest budget that the policy can do with to that of unlimited memory.
  void plan_all(const Step& original, PlanningContext options) const {
    const Bytes floor = plan("modnn", original, options).floor[Tier::device];
    const Bytes ideal = summarize(*plan("liveness", original, {}).plan).peak[Tier::device];
    constexpr int kPoints = 20;
    for (int point = 0; point <= kPoints; ++point) {
      options.memory[Tier::device] = between(floor, ideal, point, kPoints);
      const PlanResult result = plan("modnn", original, options);
      ASSERT_TRUE(result.plan) << options.memory[Tier::device]->count();
      EXPECT_LE(summarize(*result.plan).peak[Tier::device], *options.memory[Tier::device]);
    }
    options.memory[Tier::device] = floor - Bytes(1);
    EXPECT_FALSE(plan("modnn", original, options).plan);
  }
};

TEST_P(ModnnBudgets, AreAllPlanned) { plan_all(step(GetParam().model, GetParam().batch), {}); }

TEST_P(ModnnBudgets, AreAllPlannedInSubBatches) {
  const auto network = std::make_shared<Network>(make_model(GetParam().model));
  plan_all(part(network, GetParam().batch, Part::whole), cutting(network));
}

std::string case_name(const testing::TestParamInfo<ModnnCase>& row) {
  std::string name = row.param.model;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

// The paper's five, and other shapes.
INSTANTIATE_TEST_SUITE_P(Zoo, ModnnBudgets,
                         testing::Values(ModnnCase{"vgg16", 256}, ModnnCase{"vgg19", 256}, ModnnCase{"resnet34", 256},
                                         ModnnCase{"vgg101", 128}, ModnnCase{"fcn", 128}, ModnnCase{"alexnet", 128},
                                         ModnnCase{"inception-v3", 16}, ModnnCase{"densenet121", 16},
                                         ModnnCase{"lstm:4,256,16", 16}),
                         case_name);

}  // namespace
}  // namespace tide
