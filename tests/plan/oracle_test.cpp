// The checker's address sweep against a brute-force judge that shares nothing with it:
// all pairs of stays, and order between ops by walking the graph of lanes and waits.
#include <gtest/gtest.h>

#include "plan/checker.h"
#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "support/offload.h"
#include "support/random_network.h"

namespace tide {
namespace {

// before[b][a]: op a is over when op b starts.
std::vector<std::vector<bool>> order_of(const Phase& phase) {
  const std::size_t count = phase.ops.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count, false));
  for (std::size_t b = 0; b < count; ++b) {
    std::vector<std::size_t> direct;
    for (std::size_t a = b; a-- > 0;)
      if (phase.ops[a].lane == phase.ops[b].lane) {
        direct.push_back(a);
        break;
      }
    for (const std::int32_t wait : phase.ops[b].waits) direct.push_back(static_cast<std::size_t>(wait));
    for (const std::size_t a : direct) {
      before[b][a] = true;
      for (std::size_t k = 0; k < a; ++k)
        if (before[a][k]) before[b][k] = true;
    }
  }
  return before;
}

struct Box {
  std::vector<std::size_t> ops;  // that touch or bound it
  bool from_start = false, to_end = false;
  Tier tier = Tier::device;
  std::int64_t begin = 0, end = 0;
};

std::vector<Box> boxes_of(const Phase& phase) {
  std::vector<Box> boxes;
  const std::size_t count = phase.ops.size();
  for (const Residency& r : phase.residencies) {
    Box box;
    box.tier = r.tier;
    box.begin = r.address.count();
    box.end = box.begin + aligned_bytes(phase, r).count();
    box.from_start = r.first == kEntry;
    box.to_end = r.last == static_cast<std::int32_t>(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto op = static_cast<std::int32_t>(i);
      if (op < r.first || op > r.last) continue;
      bool touches = op == r.first || op == r.last;
      if (phase.ops[i].is_copy())
        touches = touches || phase.ops[i].copy().storage == r.storage;
      else if (r.tier == Tier::device)
        for (const Operand& operand : phase.step->operands_of(phase.ops[i].run().task))
          touches = touches || phase.step->tensor(operand.tensor).storage == r.storage;
      if (touches) box.ops.push_back(i);
    }
    boxes.push_back(std::move(box));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!phase.ops[i].is_run()) continue;
    const Bytes workspace = phase.step->algorithms_of(phase.ops[i].run().task)[phase.ops[i].run().algorithm].workspace;
    const std::int64_t begin = phase.ops[i].run().workspace.count();
    boxes.push_back({{i}, false, false, Tier::device, begin, begin + workspace.aligned().count()});
  }
  return boxes;
}

bool brute_force_overlap(const Phase& phase) {
  const auto before = order_of(phase);
  const std::vector<Box> boxes = boxes_of(phase);
  const auto over = [&](const Box& a, const Box& b) {  // a entirely before b
    if (a.to_end || b.from_start) return false;
    for (const std::size_t x : a.ops)
      for (const std::size_t y : b.ops)
        if (!before[y][x]) return false;
    return true;
  };
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (std::size_t j = i + 1; j < boxes.size(); ++j) {
      const Box& a = boxes[i];
      const Box& b = boxes[j];
      if (a.tier != b.tier || a.begin == a.end || b.begin == b.end || a.end <= b.begin || b.end <= a.begin) continue;
      if (!over(a, b) && !over(b, a)) return true;
    }
  return false;
}

TEST(CheckerOracle, SweepAgreesWithBruteForce) {
  int overlapping = 0;
  int apart = 0;
  for (std::uint32_t seed = 0; seed < 250; ++seed) {
    StepOptions options;
    options.optimizer.kind = OptimizerKind::sgd;
    Step step = build_step(testing_support::random_network(seed), options);
    step.algorithm_sets.push_back({{"small", Bytes(700)}});
    for (std::size_t t = 0; t < step.tasks.size(); t += 4) step.tasks[t].algorithms = 1;
    const PlanResult result = make_plan(find_policy("liveness"), std::move(step), RooflineModel(generic_cpu()), {});
    int moved = 0;
    Plan plan = testing_support::with_offloads(*result.plan, seed, 50, moved);
    plan.memory[Tier::device].reset();
    std::mt19937 random(seed);
    // Addresses and waits perturbed a little: some plans stay valid, some do not.
    for (int change = static_cast<int>(random() % 3); change > 0; --change) {
      Phase& phase = plan.phases.front();
      if (random() % 2 == 0) {
        Residency& r = phase.residencies[random() % phase.residencies.size()];
        r.address = phase.residencies[random() % phase.residencies.size()].address;
      } else {
        Op& op = phase.ops[random() % phase.ops.size()];
        if (!op.waits.empty())
          op.waits.erase(op.waits.begin() + static_cast<std::ptrdiff_t>(random() % op.waits.size()));
      }
    }
    bool found = false;
    bool other = false;
    for (const Finding& finding : check(plan, 100000)) {
      found = found || finding.kind == FindingKind::overlap;
      // A use before the stay begins is reported as a race; the oracle sees it as overlap.
      other = other || finding.kind == FindingKind::race;
    }
    const bool expected = brute_force_overlap(plan.phases.front());
    EXPECT_TRUE(found == expected || (other && expected))
        << "seed " << seed << ": sweep " << found << ", brute force " << expected;
    ++(expected ? overlapping : apart);
  }
  EXPECT_GT(overlapping, 30);
  EXPECT_GT(apart, 30);
}

}  // namespace
}  // namespace tide
