// Everything that later parts index by is checked here, because a plan may come from a
// damaged file.
#include <algorithm>
#include <tuple>

#include "plan/findings.h"

namespace tide::checker {
namespace {

template <typename Tag>
bool within(Id<Tag> id, std::size_t count) {
  return id.valid() && id.index() < count;
}

void check_tables(const Step& step, Findings& findings) {
  const auto bad = [&](std::string_view what, std::size_t index) {
    findings.add(FindingKind::malformed, "{} {} refers outside its table", what, index);
  };
  if (step.layer_names.size() != step.layer_kinds.size()) bad("layer table", 0);
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const Tensor& tensor = step.tensors[t];
    const bool layer_fits = !tensor.layer.valid() || tensor.layer.index() < step.layer_names.size();
    if (!within(tensor.storage, step.storages.size()) || !layer_fits) bad("tensor", t);
  }
  if (!findings.empty()) return;
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    const Storage& storage = step.storages[s];
    const bool needs_exit = storage.persistent;
    for (const TensorId id : {storage.entry, storage.exit})
      if (id.valid() && (id.index() >= step.tensors.size() || step.tensor(id).storage != StorageId(s)))
        bad("storage", s);
    if (needs_exit && !storage.exit.valid()) bad("storage", s);
  }
  for (std::size_t o = 0; o < step.operands.size(); ++o)
    if (!within(step.operands[o].tensor, step.tensors.size()) || step.operands[o].access > Access::add)
      bad("operand", o);
  if (step.ordered_tasks > step.tasks.size()) bad("task count", step.ordered_tasks);
  if (step.layer_steps < 0 || static_cast<std::size_t>(step.layer_steps) > step.layer_names.size()) {
    bad("step count", static_cast<std::size_t>(std::max(step.layer_steps, 0)));
    return;
  }
  for (std::size_t t = 0; t < step.tasks.size(); ++t) {
    const Task& task = step.tasks[t];
    const bool operands_fit = std::uint64_t{task.first_operand} + task.operand_count <= step.operands.size();
    const bool pairs_fit = std::uint64_t{task.first_in_place} + task.in_place_count <= step.in_place.size();
    if (!operands_fit || !within(task.layer, step.layer_names.size()) ||
        task.algorithms >= step.algorithm_sets.size() || task.operand_count == 0 || !pairs_fit || task.step < 0 ||
        task.step > 2 * step.layer_steps) {
      bad("task", t);
      continue;
    }
    for (const InPlacePair pair : step.in_place_of(task))
      if (pair.source < 0 || pair.target < 0 || pair.source >= static_cast<int>(task.operand_count) ||
          pair.target >= static_cast<int>(task.operand_count))
        bad("in-place pair of task", t);
  }
}

void check_ops(const Phase& phase, Findings& findings) {
  const Step& step = *phase.step;
  std::vector<std::int32_t> runs(step.tasks.size(), 0);
  for (std::size_t i = 0; i < phase.ops.size() && !findings.full(); ++i) {
    const Op& op = phase.ops[i];
    if (index_of(op.lane) >= kLanes) {
      findings.add(FindingKind::malformed, "op {} is on no lane", i);
      continue;
    }
    for (const std::int32_t wait : op.waits)
      if (wait < 0 || static_cast<std::size_t>(wait) >= i)
        findings.add(FindingKind::malformed, "op {} waits for op {}, which does not come before it", i, wait);
    if (op.is_run()) {
      const Run& run = op.run();
      if (!within(run.task, step.tasks.size()) || run.algorithm >= step.algorithms_of(run.task).size()) {
        findings.add(FindingKind::malformed, "op {} runs a task or an algorithm that does not exist", i);
        continue;
      }
      if (op.lane != lane_of(step.task(run.task).kind))
        findings.add(FindingKind::malformed, "op {} runs a task outside the lane of its kind", i);
      if (run.workspace.count() % kAlignment != 0)
        findings.add(FindingKind::malformed, "op {} has a workspace at {}, which is not aligned", i,
                     run.workspace.count());
      ++runs[run.task.index()];
    } else {
      const Copy& copy = op.copy();
      const std::optional<Route> route = find_route(copy.from, copy.to);
      if (!within(copy.storage, step.storages.size()) || !route)
        findings.add(FindingKind::malformed, "op {} copies nothing that exists, or between tiers that have no link", i);
      else if (op.lane != row_of(*route).lane)
        findings.add(FindingKind::malformed, "op {} is a copy outside the lane of its link", i);
    }
  }
  if (!findings.empty()) return;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    if (runs[t] != 1)
      findings.add(FindingKind::missing_task, "{} runs {} times instead of once", task_name(step, TaskId(t)), runs[t]);
}

void check_residencies(const Phase& phase, Findings& findings) {
  const auto ops = static_cast<std::int32_t>(phase.ops.size());
  for (std::size_t r = 0; r < phase.residencies.size() && !findings.full(); ++r) {
    const Residency& residency = phase.residencies[r];
    if (!within(residency.storage, phase.step->storages.size()) || index_of(residency.tier) >= kTiers) {
      findings.add(FindingKind::malformed, "residency {} is of no storage or in no tier", r);
      continue;
    }
    const auto name = [&] { return storage_name(*phase.step, residency.storage); };  // slow, so only when asked for
    if (residency.first < kEntry || residency.first > residency.last || residency.last > ops ||
        residency.first >= std::max(ops, 1))
      findings.add(FindingKind::malformed, "{} stays from op {} to op {}, which is no interval of the {} ops", name(),
                   residency.first, residency.last, ops);
    if (residency.address.count() % kAlignment != 0)
      findings.add(FindingKind::malformed, "{} is at address {}, which is not a multiple of {}", name(),
                   residency.address.count(), kAlignment);
    if (residency.address.count() > (std::int64_t{1} << 60) ||
        phase.step->storage(residency.storage).bytes.count() > (std::int64_t{1} << 60))
      findings.add(FindingKind::malformed, "{} has an impossible address or size", name());
  }
  if (!findings.empty()) return;

  // A storage has one stay per tier at a time.
  std::vector<std::uint32_t> order(phase.residencies.size());
  for (std::uint32_t r = 0; r < order.size(); ++r) order[r] = r;
  const auto key = [&](std::uint32_t r) {
    const Residency& residency = phase.residencies[r];
    return std::tuple(residency.storage, residency.tier, residency.first);
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (std::size_t k = 1; k < order.size(); ++k) {
    const Residency& a = phase.residencies[order[k - 1]];
    const Residency& b = phase.residencies[order[k]];
    if (a.storage == b.storage && a.tier == b.tier && b.first <= a.last)
      findings.add(FindingKind::malformed, "{} has two stays in {} memory at op {}",
                   storage_name(*phase.step, a.storage), tier_name(a.tier), b.first);
  }
}

}  // namespace

void check_structure(const Phase& phase, Findings& findings) {
  if (!phase.step) {
    findings.add(FindingKind::malformed, "a phase has no step");
    return;
  }
  if (phase.repeat < 1) findings.add(FindingKind::malformed, "a phase repeats {} times", phase.repeat);
  check_tables(*phase.step, findings);
  if (!findings.empty()) return;
  check_views(*phase.step, findings);
  if (!findings.empty()) return;
  check_ops(phase, findings);
  if (!findings.empty()) return;
  check_residencies(phase, findings);
}

}  // namespace tide::checker
