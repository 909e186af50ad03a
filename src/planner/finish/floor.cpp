#include "planner/finish/floor.h"

#include "cost/algorithms.h"

namespace tide {

TaskBytes::TaskBytes(const Step& step, Resting resting)
    : step_(step), resting_(std::move(resting)), seen_(step.storages.size(), -1) {}

Bytes TaskBytes::operator()(TaskId task, std::uint32_t algorithm) {
  Bytes bytes = step_.algorithms_of(task)[algorithm].workspace.aligned();
  ++calls_;
  for (const Operand& operand : step_.operands_of(task)) {
    const StorageId storage = step_.tensor(operand.tensor).storage;
    if (seen_[storage.index()] == calls_ || (step_.storage(storage).persistent && !rests(resting_, storage))) continue;
    seen_[storage.index()] = calls_;
    bytes += step_.storage(storage).bytes.aligned();
  }
  return bytes;
}

LargestTask largest_task(const Step& step, const Resting& resting) {
  LargestTask largest;
  TaskBytes task_bytes(step, resting);
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const Bytes bytes = task_bytes(TaskId(t), smallest_algorithm(step, TaskId(t)));
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

Floor smallest_floor(const Step& step, const Resting& resting) {
  Bytes inputs;
  for (const Storage& storage : step.storages)
    if (!storage.persistent && storage.entry.valid()) inputs += storage.bytes.aligned();
  Floor floor{inputs, step.ordered_tasks > 0 ? task_name(step, TaskId(0)) : ""};
  const LargestTask largest = largest_task(step, resting);
  if (largest.task.valid() && largest.bytes > inputs) floor = {largest.bytes, task_name(step, largest.task)};
  floor.bytes += persistent_bytes(step, resting);
  return floor;
}

PlanResult below(const Floor& floor) {
  PlanResult result;
  result.floor[Tier::device] = floor.bytes;
  result.bottleneck_task = floor.task;
  return result;
}

}  // namespace tide
