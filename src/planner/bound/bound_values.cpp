#include "planner/bound/bound_values.h"

#include <algorithm>

#include "cost/algorithms.h"
#include "planner/finish/floor.h"
#include "planner/leaving.h"

namespace tide {
namespace {

// Storages that a plan may keep in host memory between steps.
Resting may_be_resting(const Step& step, const PlanningContext& context) {
  if (context.rest_in_host) return resting_storages(step, context);
  if (context.parameters == Parameters::device) return {};
  Resting result(step.storages.size(), false);
  for (std::size_t s = 0; s < result.size(); ++s) result[s] = is_worth_resting(step.storages[s], context);
  return result;
}

// Bytes of operands, each storage once, and the smallest workspace.
std::vector<std::int64_t> bytes_needed(const Step& step, const Resting& resting) {
  std::vector<std::int64_t> result;
  TaskBytes task_bytes(step, resting);
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    result.push_back(task_bytes(TaskId(t), smallest_algorithm(step, TaskId(t))).count());
  return result;
}

// What is run again from a value may be needed later than the value itself. Tasks backwards, so that
// whole chains count.
void extend_for_replays(const Step& step, BoundValues& all) {
  for (std::size_t t = step.ordered_tasks; t-- > 0;) {
    const TaskId again = step.replay_of[t];
    if (!again.valid()) continue;
    std::int32_t until = -1;
    const auto value_of = [&](const Operand& operand) { return all.of_tensor[operand.tensor.index()]; };
    for (const Operand& operand : step.operands_of(again))
      if (operand.access != Access::read && value_of(operand) >= 0)
        until = std::max(until, all.values[static_cast<std::size_t>(value_of(operand))].until);
    for (const Operand& operand : step.operands_of(again))
      if (operand.access == Access::read && value_of(operand) >= 0) {
        auto& own = all.values[static_cast<std::size_t>(value_of(operand))].until;
        own = std::max(own, until);
      }
  }
}

}  // namespace

bool BoundValue::used_within(std::int32_t first, std::int32_t last) const {
  const auto it = std::lower_bound(uses.begin(), uses.end(), first);
  return it != uses.end() && *it < last;
}

BoundValues bound_values(const StepFacts& facts, const CostModel& cost, const PlanningContext& context,
                         std::int64_t smallest) {
  const Step& step = facts.step();
  const Resting resting = may_be_resting(step, context);
  BoundValues all;
  all.needed = bytes_needed(step, resting);
  all.of_tensor.assign(step.tensors.size(), -1);
  std::vector<std::int32_t> of_storage(step.storages.size(), -1);
  for (std::size_t s = 0; s < step.storages.size(); ++s)
    if (step.storages[s].persistent && !rests(resting, StorageId(s)))
      all.fixed += step.storages[s].bytes.aligned().count();
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const std::size_t s = step.tensors[t].storage.index();
    const Storage& storage = step.storages[s];
    const auto uses = facts.uses(TensorId(t));
    if (uses.empty() || storage.bytes.aligned().count() < smallest ||
        (storage.persistent && !rests(resting, StorageId(s))))
      continue;
    if (rests(resting, StorageId(s)) && of_storage[s] >= 0) {  // another value in the same place
      BoundValue& value = all.values[static_cast<std::size_t>(of_storage[s])];
      value.uses.insert(value.uses.end(), uses.begin(), uses.end());
      std::sort(value.uses.begin(), value.uses.end());
      value.changes = true;
      all.of_tensor[t] = of_storage[s];
      continue;
    }
    BoundValue value;
    value.bytes = storage.bytes.aligned().count();
    value.copy_seconds = seconds_to_leave(cost, context, storage.bytes);
    value.made =
        facts.producer(TensorId(t)).valid() && !rests(resting, StorageId(s)) ? facts.producer(TensorId(t)).value() : -1;
    value.uses.assign(uses.begin(), uses.end());
    value.until = value.uses.back();
    value.rests = rests(resting, StorageId(s));
    if (rests(resting, StorageId(s))) value.changes = storage.exit != storage.entry;
    // Only what the replay makes too comes back with it.
    if (const TaskId again = facts.replay(TensorId(t)); again.valid()) {
      const auto operands = step.operands_of(again);
      if (std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
            return operand.access != Access::read && operand.tensor == TensorId(t);
          }))
        value.replay = again;
    }
    all.of_tensor[t] = of_storage[s] = static_cast<std::int32_t>(all.values.size());
    all.values.push_back(std::move(value));
  }
  for (BoundValue& value : all.values) {
    value.until = value.uses.back();
    if (value.rests) value.until = facts.tasks() - 1;
  }
  extend_for_replays(step, all);
  return all;
}

}  // namespace tide
