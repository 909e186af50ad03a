#include "plan/checker.h"

#include <algorithm>

#include "plan/findings.h"

namespace tide {

std::string_view finding_name(FindingKind kind) {
  constexpr std::array<std::string_view, 8> names{"malformed", "missing task", "not resident", "wrong value",
                                                  "race",      "overlap",      "over budget",  "bad exit"};
  return names[static_cast<std::size_t>(kind)];
}

namespace checker {

std::vector<Clock> happens_before(const Phase& phase) {
  std::vector<Clock> clocks(phase.ops.size());
  Clock newest;  // by lane: its newest op so far
  newest.fill(-1);
  std::array<Clock, kLanes> known;  // by lane: what its newest op knew, and itself
  for (Clock& clock : known) clock.fill(-1);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const Op& op = phase.ops[i];
    const auto lane = static_cast<std::size_t>(op.lane);
    Clock clock = known[lane];
    for (const std::int32_t wait : op.waits) {
      const auto w = static_cast<std::size_t>(wait);
      for (std::size_t l = 0; l < kLanes; ++l) clock[l] = std::max(clock[l], clocks[w][l]);
      auto& own = clock[static_cast<std::size_t>(phase.ops[w].lane)];
      own = std::max(own, wait);
    }
    clocks[i] = clock;
    known[lane] = clock;
    known[lane][lane] = static_cast<std::int32_t>(i);
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
  if (op.kind == OpKind::run) return fmt::format("op {} ({})", index, task_name(*phase.step, op.task));
  return fmt::format("op {} (copy {} from {} to {})", index, storage_name(*phase.step, op.storage), tier_name(op.from),
                     tier_name(op.to));
}

void check_budget(const Plan& plan, const Phase& phase, Findings& findings) {
  std::array<Bytes, kTiers> highest{};
  for (const Residency& r : phase.residencies) {
    Bytes& top = highest[static_cast<std::size_t>(r.tier)];
    top = std::max(top, r.address + aligned_bytes(phase, r));
  }
  for (const Op& op : phase.ops)
    if (op.kind == OpKind::run)
      highest[0] =
          std::max(highest[0], op.workspace + phase.step->algorithms_of(op.task)[op.algorithm].workspace.aligned());
  const std::array<std::optional<Bytes>, kTiers> budgets{plan.memory, plan.host_memory, plan.disk_memory};
  for (std::size_t tier = 0; tier < kTiers; ++tier)
    if (budgets[tier] && highest[tier] > *budgets[tier])
      findings.add(FindingKind::over_budget, "{} memory reaches {} bytes, the budget is {}",
                   tier_name(static_cast<Tier>(tier)), highest[tier].count(), budgets[tier]->count());
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
