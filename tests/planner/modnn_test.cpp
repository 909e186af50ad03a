// moDNN: its memory list, its Algorithm 1 within any budget, its sub-batches. Every plan here has
// passed the checker.
#include <gtest/gtest.h>

#include <set>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/modnn_memory.h"
#include "planner/planner.h"
#include "planner/runtime.h"
#include "step/build.h"
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
  memory_.each_scheme(Bytes(5), may_leave, [&](const MemoryList::Range& range) { found.emplace_back(range.blocks.begin(), range.blocks.end()); });
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
  Step step(std::string_view model, std::int64_t batch) const {
    Step step = build_step(std::make_shared<Network>(make_model(model)), {.batch = batch});
    annotate_for(step, device_);
    return step;
  }
  PlanResult plan(std::string_view policy, const Step& step, const PlannerOptions& options) const {
    return make_plan(find_policy(policy), step, cost_, options);
  }
  static PlannerOptions within(Bytes memory) {
    PlannerOptions options;
    options.memory = memory;
    return options;
  }
  static Bytes between(Bytes low, Bytes high, int part, int parts) {
    return low + Bytes((high - low).count() / parts * part);
  }
  Device device_ = find_device("k40m").rates();
  DeviceModel cost_{device_};
};

// Copies of each storage by direction, and how often its value was made anew in between.
TEST_F(Modnn, WhatWasCopiedOutOnceIsOnlyFreedTheNextTime) {
  const Step original = step("resnet50", 16);
  const Bytes floor = plan("modnn", original, {}).floor, ideal = plan("liveness", original, {}).floor;
  int again = 0;  // fetches of what had been fetched before
  for (int part = 0; part < 4; ++part) {
    const PlanResult result = plan("modnn", original, within(between(floor, ideal, part, 20)));
    ASSERT_TRUE(result.plan);
    const Phase& phase = result.plan->phases.front();
    std::set<StorageId> outside, fetched;  // copied out, and since then not written
    for (const Op& op : phase.ops) {
      if (op.kind == OpKind::copy && op.lane == Lane::out) {
        EXPECT_TRUE(outside.insert(op.storage).second);
      }
      if (op.kind == OpKind::copy && op.lane == Lane::in && !fetched.insert(op.storage).second) ++again;
      if (op.kind != OpKind::run) continue;
      for (const Operand& operand : phase.step->operands_of(op.task))
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
  const Bytes floor = plan("modnn", original, {}).floor, ideal = plan("liveness", original, {}).floor;
  PlannerOptions options = within(between(floor, ideal, 1, 20));
  int together[2] = {0, 0};
  double seconds[2] = {0, 0};
  for (const bool one_lane : {false, true}) {
    options.one_lane = one_lane;
    const Plan made = *plan("modnn", original, options).plan;
    const Timeline timeline = simulate(made, cost_);
    const Phase& phase = made.phases.front();
    for (std::size_t a = 0; a < phase.ops.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (phase.ops[a].kind == OpKind::copy && phase.ops[b].kind == OpKind::copy &&
            timeline.spans[a].start < timeline.spans[b].end && timeline.spans[b].start < timeline.spans[a].end)
          ++together[one_lane ? 1 : 0];
    seconds[one_lane ? 1 : 0] = timeline.seconds;
  }
  EXPECT_GT(together[0], 0);
  EXPECT_EQ(together[1], 0);
  EXPECT_GT(seconds[1], seconds[0]);
}

struct Case {
  const char* model;
  std::int64_t batch;
};

class ModnnBudgets : public Modnn, public testing::WithParamInterface<Case> {};

// From the smallest budget that any plan can do with to that of unlimited memory.
TEST_P(ModnnBudgets, AreAllPlanned) {
  const Step original = step(GetParam().model, GetParam().batch);
  const PlanResult unlimited = plan("modnn", original, {});
  const Bytes ideal = summarize(*plan("liveness", original, {}).plan).peak_bytes;
  constexpr int kPoints = 20;
  for (int part = 0; part <= kPoints; ++part) {
    const Bytes memory = between(unlimited.floor, ideal, part, kPoints);
    const PlanResult result = plan("modnn", original, within(memory));
    ASSERT_TRUE(result.plan) << memory.count();
    EXPECT_LE(summarize(*result.plan).peak_bytes, memory);
  }
  EXPECT_FALSE(plan("modnn", original, within(unlimited.floor - Bytes(1))).plan);
}

std::string case_name(const testing::TestParamInfo<Case>& row) {
  std::string name = row.param.model;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Zoo, ModnnBudgets,
                         testing::Values(Case{"alexnet", 128}, Case{"vgg16", 64}, Case{"resnet34", 64}, Case{"fcn", 16},
                                         Case{"inception-v3", 16}, Case{"densenet121", 16}, Case{"lstm:4,256,16", 64}),
                         case_name);

}  // namespace
}  // namespace tide
