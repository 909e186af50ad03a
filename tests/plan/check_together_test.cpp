// The checker of several ranks' plans: sets that go together, and every way in which they can be made not to.
#include "plan/check_together.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/by_hand.h"
#include "support/error_of.h"

namespace tide {
namespace {

using test::HandPlan;

Plan usual() {
  HandPlan hand;
  const std::int32_t a = hand.task("a", 1), b = hand.task("b", 1);
  const std::int32_t first = hand.reduce("ga", 100, {a}), second = hand.reduce("gb", 200, {b});
  hand.task("update", 1, {first, second});
  return hand.plan();
}

std::vector<Finding> findings_of(const std::vector<Plan>& plans) {
  std::vector<const Plan*> pointers;
  for (const Plan& plan : plans) pointers.push_back(&plan);
  return check_together(pointers);
}

TEST(CheckTogether, RanksThatDoTheSameGoTogether) {
  for (const std::size_t ranks : {1U, 2U, 64U}) EXPECT_TRUE(findings_of(std::vector<Plan>(ranks, usual())).empty());
  // What else a rank does is its own business.
  HandPlan other;
  const std::int32_t b = other.task("other", 5);
  other.out(1000, {b});
  const std::int32_t first = other.reduce("ga", 100), second = other.reduce("gb", 200, {b});
  other.in(1000, {first});
  other.task("update", 1, {second});
  EXPECT_TRUE(findings_of({usual(), other.plan(), usual()}).empty());
}

TEST(CheckTogether, RoundsAreFollowed) {
  Plan once = usual(), twice = usual();
  twice.phases.front().repeat = 2;
  EXPECT_TRUE(findings_of({twice, twice}).empty());
  Plan two_phases = usual();
  two_phases.phases.push_back(two_phases.phases.front());
  EXPECT_TRUE(findings_of({twice, two_phases}).empty());
  EXPECT_EQ(findings_of({once, twice}).front().kind, FindingKind::apart);
  twice.phases.front().repeat = INT32_MAX;
  EXPECT_EQ(findings_of({once, twice}).front().kind, FindingKind::malformed);
}

// Rank 1 of 3 is damaged.
TEST(CheckTogether, EveryDamageIsFound) {
  struct Damage {
    const char* what;
    FindingKind kind;
    std::function<void(Plan&, Step&)> apply;
  };
  const std::vector<Damage> damages{
      {"another order", FindingKind::apart, [](Plan& p, Step&) { std::swap(p.phases[0].ops[2], p.phases[0].ops[3]); }},
      {"one is missing", FindingKind::apart, [](Plan& p, Step&) { p.phases[0].ops.resize(3); }},
      {"none at all", FindingKind::apart, [](Plan& p, Step&) { p.phases[0].ops.resize(2); }},
      {"no phase at all", FindingKind::apart, [](Plan& p, Step&) { p.phases.clear(); }},
      {"other bytes", FindingKind::apart, [](Plan&, Step& s) { s.storages[2].bytes = Bytes(104); }},
      {"another name", FindingKind::apart, [](Plan&, Step& s) { s.layer_names[2] = "other"; }},
      {"another kind", FindingKind::apart, [](Plan&, Step& s) { s.tasks[2].kind = TaskKind::gather; }},
      {"one more round", FindingKind::apart, [](Plan& p, Step&) { p.phases[0].repeat = 2; }},
      {"on another lane", FindingKind::malformed, [](Plan& p, Step&) { p.phases[0].ops[2].lane = Lane::compute; }},
      {"on no lane", FindingKind::malformed, [](Plan& p, Step&) { p.phases[0].ops[2].lane = static_cast<Lane>(9); }},
      {"a wait for nothing", FindingKind::malformed, [](Plan& p, Step&) { p.phases[0].ops[2].waits = {77}; }},
      {"a wait before the start", FindingKind::malformed, [](Plan& p, Step&) { p.phases[0].ops[2].waits = {-1}; }},
      {"no such task", FindingKind::malformed, [](Plan& p, Step&) { p.phases[0].ops[2].run().task = TaskId(77); }},
      {"no such tensor", FindingKind::malformed, [](Plan&, Step& s) { s.operands[2].tensor = TensorId(77); }},
      {"no such storage", FindingKind::malformed, [](Plan&, Step& s) { s.tensors[2].storage = StorageId(77); }},
      {"no such operand", FindingKind::malformed, [](Plan&, Step& s) { s.tasks[2].operand_count = 77; }},
      {"no such view", FindingKind::malformed, [](Plan&, Step& s) { s.operands[2].view = ViewId(3); }},
      {"no step", FindingKind::malformed, [](Plan& p, Step&) { p.phases[0].step = nullptr; }},
      {"no rounds", FindingKind::malformed, [](Plan& p, Step&) { p.phases[0].repeat = 0; }},
      {"a wait for what comes later", FindingKind::deadlock,
       [](Plan& p, Step&) { p.phases[0].ops[2].waits.push_back(3); }},
      {"a wait for itself", FindingKind::deadlock, [](Plan& p, Step&) { p.phases[0].ops[0].waits.push_back(0); }},
  };
  for (const Damage& damage : damages) {
    std::vector<Plan> plans(3, usual());
    auto open = std::make_shared<Step>(*plans[1].phases[0].step);
    plans[1].phases[0].step = open;
    ASSERT_TRUE(findings_of(plans).empty());
    damage.apply(plans[1], *open);
    const std::vector<Finding> findings = findings_of(plans);
    ASSERT_FALSE(findings.empty()) << damage.what;
    EXPECT_EQ(findings.front().kind, damage.kind) << damage.what << ": " << findings.front().text;
    EXPECT_NE(findings.front().text.find(damage.kind == FindingKind::deadlock ? "circle" : "rank"), std::string::npos);
  }
}

// What one rank does first, the other does last.
TEST(CheckTogether, CirclesThroughOtherRanksAreNamed) {
  HandPlan a, b;
  a.reduce("first", 100);
  a.reduce("second", 100);
  b.reduce("second", 100);
  b.reduce("first", 100);
  const std::vector<Finding> findings = findings_of({a.plan(), b.plan()});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].kind, FindingKind::apart);
  EXPECT_EQ(findings[1].kind, FindingKind::deadlock);
  EXPECT_NE(findings[1].text.find("first"), std::string::npos) << findings[1].text;
  EXPECT_NE(findings[1].text.find("second"), std::string::npos) << findings[1].text;
}

TEST(CheckTogether, TheFirstFindingIsAnError) {
  const Plan plan = usual();
  Plan fewer = usual();
  fewer.phases[0].ops.resize(2);
  const std::vector<const Plan*> plans{&plan, &fewer};
  const std::string error = test::error_of([&] { require_valid_together(plans); });
  EXPECT_NE(error.find("apart"), std::string::npos) << error;
}

}  // namespace
}  // namespace tide
