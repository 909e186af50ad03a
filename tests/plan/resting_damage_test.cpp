// The checker against plans whose parameters rest in host memory, damaged where only such plans
// can be: on the way in, and on the way back.
#include <gtest/gtest.h>

#include "plan/checker.h"
#include "plan/patient.h"
#include "planner/policy.h"

namespace tide {
namespace {

using testing_support::Patient;

Patient resting_patient(std::uint32_t seed) {
  StepOptions options;
  options.batch = 2;
  options.optimizer.kind = OptimizerKind::adam;
  const Step step = build_step(testing_support::random_network(seed), options);
  PlanningContext planner;
  planner.rest_in_host.emplace(step.storages.size(), true);
  const RooflineModel cost(generic_cpu());
  planner.memory[Tier::device] = Bytes(kAlignment);
  planner.memory[Tier::device] = make_plan(find_policy("superneurons"), step, cost, planner).floor[Tier::device];
  Patient made{*make_plan(find_policy("superneurons"), step, cost, planner).plan, nullptr, std::mt19937(seed)};
  made.step = std::make_shared<Step>(*made.phase().step);
  made.phase().step = made.step;
  return made;
}

bool is_copy(const Patient& p, const Op& op, Tier to) {
  return op.is_copy() && op.copy().to == to && p.step->storage(op.copy().storage).persistent;
}

// A copy of something that rests to the given tier.
std::vector<std::size_t> copies(Patient& p, Tier to) {
  return p.ops_where([&](const Op& op) { return is_copy(p, op, to); });
}

using Kinds = std::vector<FindingKind>;

// The kinds of all findings; damage is only counted where `apply` finds a place for it.
void expect_found(const std::function<bool(Patient&)>& apply, const Kinds& expected) {
  int applied = 0;
  for (std::uint32_t seed = 0; seed < 100 && applied < 12; ++seed) {
    Patient p = resting_patient(seed);
    ASSERT_TRUE(check(p.plan).empty()) << check(p.plan)[0].text;
    if (!apply(p)) continue;
    ++applied;
    bool found = false;
    std::string all;
    for (const Finding& finding : check(p.plan, 100)) {
      found = found || std::ranges::count(expected, finding.kind) > 0;
      all += finding.text + '\n';
    }
    EXPECT_TRUE(found) << "seed " << seed << " is found to be otherwise: " << all;
  }
  EXPECT_GE(applied, 3) << "no plan offers a place for this damage";
}

TEST(RestingDamage, ANewValueIsNotWrittenBack) {
  expect_found(
      [](Patient& p) {
        const auto found = copies(p, Tier::host);
        if (found.empty()) return false;
        p.remove_op(found[p.pick(found.size())]);
        return true;
      },
      {FindingKind::bad_exit});
}

TEST(RestingDamage, TheOldValueIsWrittenBack) {
  expect_found(
      [](Patient& p) {
        for (std::size_t i = 1; i < p.ops().size(); ++i) {
          Op& before = p.ops()[i - 1];
          if (!is_copy(p, p.ops()[i], Tier::host) || !before.is_run() ||
              p.step->task(before.run().task).kind != TaskKind::update)
            continue;
          before.waits.clear();
          p.ops()[i].waits.clear();
          std::swap(before, p.ops()[i]);
          return true;
        }
        return false;
      },
      {FindingKind::bad_exit});
}

TEST(RestingDamage, TheWayBackDoesNotWaitForTheUpdate) {
  expect_found(
      [](Patient& p) {
        const auto found = copies(p, Tier::host);
        if (found.empty()) return false;
        p.ops()[found[0]].waits.clear();  // later ones may be ordered by their lane all the same
        return true;
      },
      {FindingKind::race});
}

TEST(RestingDamage, AParameterIsNotFetched) {
  expect_found(
      [](Patient& p) {
        const auto found = copies(p, Tier::device);
        if (found.empty()) return false;
        p.remove_op(found[p.pick(found.size())]);
        return true;
      },
      // Values are only looked at where the order holds, for which others may have counted on the copy.
      {FindingKind::wrong_value, FindingKind::not_resident, FindingKind::race});
}

TEST(RestingDamage, ItsPlaceInHostMemoryEndsEarly) {
  expect_found(
      [](Patient& p) {
        const auto found = p.stays_where([&](const Residency& r) { return r.first == kEntry && r.tier == Tier::host; });
        if (found.empty()) return false;
        --p.stays()[found[p.pick(found.size())]].last;
        return true;
      },
      {FindingKind::bad_exit});
}

TEST(RestingDamage, AnotherTakesItsPlaceInHostMemory) {
  expect_found(
      [](Patient& p) {
        const auto found = p.stays_where([&](const Residency& r) { return r.first == kEntry && r.tier == Tier::host; });
        if (found.size() < 2) return false;
        p.stays()[found[1]].address = p.stays()[found[0]].address;
        return true;
      },
      {FindingKind::overlap});
}

}  // namespace
}  // namespace tide
