// Steps whose operands have views: planned, written to files and read again, and damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "plan/checker.h"
#include "plan/plan_json.h"
#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "support/parts_step.h"

namespace tide {
namespace {

using testing_support::allow_in_place;
using testing_support::PartsStep;

const RooflineModel kCost(generic_cpu());

Plan plan_of(const Step& step, std::string_view policy = "liveness") {
  return *make_plan(find_policy(policy), step, kCost, {}).plan;
}

// The finding that names the damage, or nothing where there is none.
std::string finding_of(const std::function<void(Step&)>& damage) {
  Plan plan = plan_of(PartsStep::make());
  EXPECT_TRUE(check(plan).empty());
  Step step = *plan.phases.front().step;
  damage(step);
  plan.phases.front().step = std::make_shared<const Step>(std::move(step));
  const std::vector<Finding> findings = check(plan);
  return findings.empty() ? "" : findings.front().text;
}

struct BadView {
  const char* name;
  std::function<void(Step&)> apply;
  const char* text;  // of the finding
};

std::vector<BadView> bad_views() {
  const auto lower = [](Step& step) -> View& { return step.views[PartsStep::kLower]; };
  return {
      {"ViewBeyondItsTensor", [=](Step& step) { lower(step).offset += Bytes(4); }, "goes beyond"},
      {"ViewWithAnImpossibleOffset", [=](Step& step) { lower(step).offset = Bytes(INT64_MAX - 2); }, "goes beyond"},
      {"ViewOfTooManyElements",
       [=](Step& step) {
         lower(step).shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
       },
       "goes beyond"},
      {"ViewBeyondItsStorage",
       [](Step& step) { step.storages[step.tensors[PartsStep::kX].storage.index()].bytes = Bytes(1024); },
       "goes beyond"},
      {"ViewWithinAnElement",
       [](Step& step) {
         step.views[PartsStep::kUpper].offset = Bytes(2);
         step.views[PartsStep::kUpper].shape = {1, 16};
       },
       "within an element"},
      {"ViewOutOfRange", [](Step& step) { step.operands[0].view = ViewId(step.views.size()); }, "does not exist"},
      {"ViewInAnOrderOfAnotherRank", [=](Step& step) { lower(step).order = MemoryOrder::row_major(3); },
       "in an order of 3 axes"},
      {"TensorInAnOrderOfAnotherRank",
       [](Step& step) { step.tensors[PartsStep::kY].order = MemoryOrder::channels_last(4); }, "in an order of 4 axes"},
      {"InPlaceThroughAPart",
       [](Step& step) {
         allow_in_place(step, 3, {0, 1});  // z over the lower half of h
       },
       "in place through a part"},
      {"PartsThatOverlap",
       [=](Step& step) {
         lower(step).offset = Bytes(0);
         for (Operand& operand : step.operands)
           if (operand.access == Access::read) operand.view = ViewId();
       },
       "overlap"},
      {"PartsWithAGap",
       [=](Step& step) {
         step.views[PartsStep::kUpper].shape = {1, PartsStep::kColumns};
         for (Operand& operand : step.operands)
           if (operand.access == Access::read) operand.view = ViewId();
       },
       "leave a gap"},
      {"PartsThatEndEarly",
       [=](Step& step) {
         lower(step).shape = {1, PartsStep::kColumns};
       },
       "end at byte"},
      {"PartOverAWhole", [](Step& step) { step.operands[1].view = ViewId(); }, "over what is there"},
      {"PartMadeAgain",
       [](Step& step) {
         step.operands.push_back({Role::y, Access::write, 0, TensorId(PartsStep::kH), ViewId(PartsStep::kUpper)});
         step.tasks[9].first_operand = static_cast<std::uint32_t>(step.operands.size() - 1);
         step.tasks[9].operand_count = 1;
       },
       "makes a part"},
      // These the play of the plan finds.
      {"SecondPartAsTheFirst", [](Step& step) { step.operands[3].access = Access::write; }, "overwrites what earlier"},
      {"FirstPartAsTheSecond", [](Step& step) { step.operands[1].access = Access::accumulate; }, "out of turn"},
  };
}

class ViewDamage : public testing::TestWithParam<BadView> {};

TEST_P(ViewDamage, IsFound) {
  const std::string text = finding_of(GetParam().apply);
  EXPECT_NE(text.find(GetParam().text), std::string::npos) << "found: " << text;
}

INSTANTIATE_TEST_SUITE_P(Checker, ViewDamage, testing::ValuesIn(bad_views()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Views, APartThatIsNotThereYetCannotBeRead) {
  Plan plan = plan_of(PartsStep::make());
  std::vector<Op>& ops = plan.phases.front().ops;
  const auto runs = [&](std::size_t task) {
    return std::find_if(ops.begin(), ops.end(),
                        [&](const Op& op) { return op.is_run() && op.run().task == TaskId(task); });
  };
  std::swap(runs(1)->run().task, runs(2)->run().task);  // h is read before its lower half is made
  EXPECT_FALSE(check(plan).empty());
}

TEST(Views, ArePlannedByPoliciesThatKnowNothingOfThem) {
  for (const Policy& policy : policies()) {
    const PlanResult free = make_plan(policy, PartsStep::make(), kCost, {});
    ASSERT_TRUE(free.plan) << policy.name;
    EXPECT_TRUE(check(*free.plan).empty()) << policy.name;
    // The least that it can do with, too.
    const PlanResult tight = make_plan(policy, PartsStep::make(), kCost, within(free.floor[Tier::device]));
    ASSERT_TRUE(tight.plan) << policy.name;
    EXPECT_TRUE(check(*tight.plan).empty()) << policy.name;
    EXPECT_EQ(tight.plan->phases.front().step->views, PartsStep::make().views) << policy.name;
  }
}

TEST(Views, PlanFilesRoundTrip) {
  Step step = PartsStep::make();
  step.tensors[PartsStep::kY].shape = {1, 4, 2, 1, 8, 256};
  step.tensors[PartsStep::kY].order = MemoryOrder::channels_last(6);
  const Plan plan = plan_of(step);
  const std::string text = to_json(plan);
  const Plan again = plan_from_json(text);
  EXPECT_EQ(to_json(again), text);
  EXPECT_TRUE(check(again).empty());
  const Step& read = *again.phases.front().step;
  EXPECT_EQ(read.views, step.views);
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    EXPECT_EQ(read.tensors[t].shape, step.tensors[t].shape);
    EXPECT_EQ(read.tensors[t].order, step.tensors[t].order);
  }
  for (std::size_t o = 0; o < step.operands.size(); ++o) EXPECT_EQ(read.operands[o].view, step.operands[o].view);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Views, DamagedPlanFilesAreRefused) {
  const std::string text = to_json(plan_of(PartsStep::make()));
  const std::string view = "[[2,2,4096],[0,1,2],0]";
  for (const std::string_view damaged :
       {"[[],[0,1,2],0]", "[[2,2,4096],[],0]", "[[2,2,0],[0,1,2],0]", "[[2,2,4096],[0,1,1],0]",
        "[[2,2,4096],[0,1,3],0]", "[[2,2,4096],[0,1,2],-4]", "[[1,1,1,1,1,1,1],[0,1,2],0]", "[[2,2,4096],7,0]",
        "[[2,2,4096],[0,1,2]]", "[[2,\"2\",4096],[0,1,2],0]"}) {
    EXPECT_THROW(static_cast<void>(plan_from_json(replaced(text, view, damaged))), Error) << damaged;
  }
  EXPECT_FALSE(check(plan_from_json(replaced(text, view, "[[2,2,4096],[0,1],0]"))).empty());
}

}  // namespace
}  // namespace tide
