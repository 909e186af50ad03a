// A valid plan with copies, waits and workspaces, opened for damage.
#pragma once

#include <functional>
#include <random>

#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "support/offload.h"
#include "support/random_network.h"

namespace tide::testing_support {

// The plan under damage, with its step open for writing.
struct Patient {
  Plan plan;
  std::shared_ptr<Step> step;
  std::mt19937 random;

  Phase& phase() { return plan.phases.front(); }
  std::vector<Op>& ops() { return phase().ops; }
  std::vector<Residency>& stays() { return phase().residencies; }
  std::size_t pick(std::size_t count) { return random() % count; }

  std::vector<std::size_t> ops_where(const std::function<bool(const Op&)>& predicate) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < ops().size(); ++i)
      if (predicate(ops()[i])) found.push_back(i);
    return found;
  }
  std::vector<std::size_t> stays_where(const std::function<bool(const Residency&)>& predicate) {
    std::vector<std::size_t> found;
    for (std::size_t r = 0; r < stays().size(); ++r)
      if (predicate(stays()[r])) found.push_back(r);
    return found;
  }
  // A stay in device memory of a storage that does not persist.
  std::vector<std::size_t> transient_stays() {
    return stays_where([&](const Residency& r) {
      return r.tier == Tier::device && !step->storage(r.storage).persistent && r.first >= 0;
    });
  }
  // Removes an op and renumbers everything behind it.
  void remove_op(std::size_t at) {
    const auto index = static_cast<std::int32_t>(at);
    ops().erase(ops().begin() + static_cast<std::ptrdiff_t>(at));
    for (Op& op : ops()) {
      std::erase(op.waits, index);
      for (std::int32_t& wait : op.waits) wait -= wait > index ? 1 : 0;
    }
    for (Residency& r : stays()) {
      r.first -= r.first > index ? 1 : 0;
      r.last -= r.last >= index && r.last > 0 && r.last > r.first ? 1 : 0;
    }
  }
};

inline Patient patient(std::uint32_t seed) {
  StepOptions options;
  options.batch = 2;
  options.optimizer.kind = OptimizerKind::adam;
  Step step = build_step(random_network(seed), options);
  // Some workspaces, so that they can be damaged.
  step.algorithm_sets.push_back({{"small", Bytes(1000)}, {"none", Bytes()}});
  for (std::size_t t = 0; t < step.tasks.size(); t += 3) step.tasks[t].algorithms = 1;
  const PlanResult result = make_plan(find_policy("liveness"), std::move(step), RooflineModel(generic_cpu()), {});
  int moved = 0;
  Patient made{with_offloads(*result.plan, seed, 60, moved), nullptr, std::mt19937(seed)};
  made.plan.memory[Tier::device] = summarize(made.plan).peak[Tier::device];
  made.step = std::make_shared<Step>(*made.phase().step);
  made.phase().step = made.step;
  return made;
}

}  // namespace tide::testing_support
