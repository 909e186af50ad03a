#include "planner/layout.h"

#include <algorithm>

namespace tide {

std::vector<Op> runs_in_order(const Step& step) {
  std::vector<Op> ops(step.ordered_tasks);
  for (std::size_t t = 0; t < ops.size(); ++t) ops[t].task = TaskId(t);
  return ops;
}

std::uint32_t smallest_algorithm(const Step& step, TaskId task) {
  const auto& algorithms = step.algorithms_of(task);
  const auto least = std::min_element(algorithms.begin(), algorithms.end(),
                                      [](const Algorithm& a, const Algorithm& b) { return a.workspace < b.workspace; });
  return static_cast<std::uint32_t>(least - algorithms.begin());
}

std::vector<Interval> lifetimes(const Step& step) {
  const auto end = static_cast<std::int32_t>(step.ordered_tasks);
  std::vector<Interval> result;
  result.reserve(step.storages.size());
  for (const Storage& storage : step.storages) {
    if (storage.persistent)
      result.push_back({kEntry, end, storage.bytes});
    else if (storage.entry.valid())
      result.push_back({kEntry, kEntry, storage.bytes});
    else
      result.push_back({end, kEntry, storage.bytes});
  }
  for (std::int32_t t = 0; t < end; ++t) {
    for (const Operand& operand : step.operands_of(TaskId(static_cast<std::size_t>(t)))) {
      Interval& life = result[step.tensor(operand.tensor).storage.index()];
      life.first = std::min(life.first, t);
      life.last = std::max(life.last, t);
    }
  }
  return result;
}

LargestTask largest_task(const Step& step, const Resting& resting) {
  LargestTask largest;
  std::vector<StorageId> seen;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    Bytes bytes = step.algorithms_of(TaskId(t))[smallest_algorithm(step, TaskId(t))].workspace.aligned();
    seen.clear();
    for (const Operand& operand : step.operands_of(TaskId(t))) {
      const StorageId storage = step.tensor(operand.tensor).storage;
      if ((step.storage(storage).persistent && !rests(resting, storage)) ||
          std::find(seen.begin(), seen.end(), storage) != seen.end())
        continue;
      seen.push_back(storage);
      bytes += step.storage(storage).bytes.aligned();
    }
    if (!largest.task.valid() || bytes > largest.bytes) largest = {TaskId(t), bytes};
  }
  return largest;
}

Bytes persistent_bytes(const Step& step, const Resting& resting) {
  Bytes total;
  for (std::size_t s = 0; s < step.storages.size(); ++s)
    if (step.storages[s].persistent && !rests(resting, StorageId(s))) total += step.storages[s].bytes.aligned();
  return total;
}

PlanResult finish_plan(Step step, std::vector<Op> ops, Layout layout, const PlannerOptions& options) {
  PlanResult result;
  result.floor = layout.peak;
  result.bottleneck_task = std::move(layout.bottleneck);
  if (options.memory && layout.peak > *options.memory) return result;
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i].workspace = layout.workspaces[i];
  Phase phase;
  phase.step = std::make_shared<const Step>(std::move(step));
  phase.ops = std::move(ops);
  phase.residencies = std::move(layout.residencies);
  result.plan.emplace();
  result.plan->phases.push_back(std::move(phase));
  return result;
}

}  // namespace tide
