#include "plan/checker.h"

#include <algorithm>

#include "plan/findings.h"

namespace tide {

std::string_view finding_name(FindingKind kind) {
  constexpr std::array<std::string_view, 10> kNames{"malformed", "missing task", "not resident", "wrong value",
                                                    "race",      "overlap",      "over budget",  "bad exit",
                                                    "apart",     "deadlock"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace checker {

std::vector<Clock> happens_before(const Phase& phase) {
  std::vector<Clock> clocks(phase.ops.size());
  PerLane<Clock> known{Clock(-1)};  // by lane: what its newest op knew, and itself
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const Op& op = phase.ops[i];
    Clock clock = known[op.lane];
    for (const std::int32_t wait : op.waits) {
      const auto w = static_cast<std::size_t>(wait);
      for (const Lane lane : kLaneTable) clock[lane] = std::max(clock[lane], clocks[w][lane]);
      std::int32_t& own = clock[phase.ops[w].lane];
      own = std::max(own, wait);
    }
    clocks[i] = clock;
    known[op.lane] = clock;
    known[op.lane][op.lane] = static_cast<std::int32_t>(i);
  }
  return clocks;
}

std::string storage_name(const Step& step, StorageId storage) {
  for (std::size_t t = 0; t < step.tensors.size(); ++t)
    if (step.tensors[t].storage == storage) return tensor_name(step, TensorId(t));
  return fmt::format("storage {}", storage.value());
}

std::string op_name(const Phase& phase, std::int32_t index) {
  if (index < 0) return "the start";
  if (static_cast<std::size_t>(index) >= phase.ops.size()) return "the end";
  const Op& op = phase.ops[static_cast<std::size_t>(index)];
  if (op.is_run()) return fmt::format("op {} ({})", index, task_name(*phase.step, op.run().task));
  return fmt::format("op {} (copy {} from {} to {})", index, storage_name(*phase.step, op.copy().storage),
                     tier_name(op.copy().from), tier_name(op.copy().to));
}

void check_budget(const Plan& plan, const Phase& phase, Findings& findings) {
  PerTier<Bytes> highest;
  for (const Residency& r : phase.residencies)
    highest[r.tier] = std::max(highest[r.tier], r.address + aligned_bytes(phase, r));
  for (const Op& op : phase.ops)
    if (op.is_run())
      highest[Tier::device] =
          std::max(highest[Tier::device], op.run().workspace + workspace_bytes(*phase.step, op.run()).aligned());
  for (const TierRow& row : kTierTable)
    if (plan.memory[row.tier] && highest[row.tier] > *plan.memory[row.tier])
      findings.add(FindingKind::over_budget, "{} memory reaches {} bytes, the budget is {}", row.name,
                   highest[row.tier].count(), plan.memory[row.tier]->count());
}

}  // namespace checker

std::vector<Finding> check(const Plan& plan, std::size_t limit) {
  checker::Findings findings(limit);
  if (plan.phases.empty()) findings.add(FindingKind::malformed, "the plan has no phase");
  for (const Phase& phase : plan.phases) {
    checker::check_structure(phase, findings);
    if (!findings.empty()) break;  // nothing below can be trusted to index safely
    const std::vector<checker::Clock> clocks = checker::happens_before(phase);
    checker::Touches touches;
    checker::check_values(phase, clocks, touches, findings);
    checker::check_addresses(phase, clocks, touches, findings);
    checker::check_budget(plan, phase, findings);
  }
  if (findings.empty()) checker::check_phases(plan, findings);
  return std::move(findings).take();
}

void require_valid(const Plan& plan) {
  const std::vector<Finding> findings = check(plan, 1);
  if (!findings.empty())
    throw Error("the plan is not valid: {}: {}; plan again instead of running it", finding_name(findings[0].kind),
                findings[0].text);
}

}  // namespace tide
