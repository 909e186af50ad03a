#include "planner/runtime/runtime.h"

#include <algorithm>

#include "cost/algorithms.h"
#include "planner/finish/floor.h"

namespace tide {

VirtualRuntime::VirtualRuntime(const StepFacts& facts, const CostModel& cost, Bytes memory, const RuntimeRules& rules)
    : facts_(facts),
      step_(facts.step()),
      cost_(cost),
      rules_(rules),
      bottom_(persistent_bytes(step_, facts.resting())),
      record_(step_, facts.resting()),
      pool_(memory - bottom_, Bytes(kAlignment)),
      cache_(memory - bottom_, rules.replacement, step_.storages.size()),
      nodes_(step_.storages.size()),
      pending_(step_.tensors.size(), 0),
      clock_(facts, cost),
      met_(step_.storages.size(), 0) {
  // The inputs are where the recorder put them: behind what persists, in table order.
  for (std::size_t s = 0; s < step_.storages.size(); ++s) {
    const StorageId id(s);
    if (step_.storages[s].persistent || !step_.storages[s].entry.valid()) continue;
    const auto node = pool_.allocate_at(record_.address(id) - bottom_, size(id));
    nodes_[s] = node->id;
    cache_.insert(key(id), node->address, node->bytes);
    update_rank(id);
    // Nobody will ever read some inputs (labels of a network without a loss).
    if (facts_.last_use(step_.storages[s].entry) < 0) release(id);
  }
}

Draft VirtualRuntime::run() && {
  for (std::int32_t position = 0; position < facts_.tasks() && !stopped_; ++position) {
    const TaskId task(static_cast<std::size_t>(position));
    execute(task);
    if (rules_.prefetch != Prefetch::never && position + 1 >= facts_.first_backward() && !stopped_) prefetch();
  }
  return stopped_ ? Draft() : std::move(record_).finish();
}

std::optional<Draft> VirtualRuntime::run_within(std::size_t ops) && {
  most_ops_ = static_cast<std::int32_t>(std::min<std::size_t>(ops, INT32_MAX));
  Draft draft = std::move(*this).run();
  return stopped_ ? std::nullopt : std::optional(std::move(draft));
}

void VirtualRuntime::execute(TaskId task) {
  const auto operands = step_.operands_of(task);
  for (const Operand& operand : operands)
    if (operand.access != Access::write) ++pending_[operand.tensor.index()];
  for (const Operand& operand : operands)
    if (operand.access == Access::read && !stopped_) make_available(operand.tensor);
  if (stopped_) return;
  bring_together(task);
  if (!launch(task)) return;
  for (const Operand& operand : operands)
    if (operand.access != Access::write) --pending_[operand.tensor.index()];
  if (task.index() < step_.ordered_tasks) done_ = task.value();
  settle(task);
}

bool VirtualRuntime::may_drop(TensorId tensor) const {
  return rules_.recompute != Recompute::none && facts_.droppable(tensor) && pending_[tensor.index()] == 0;
}

TensorId VirtualRuntime::missing_source(TensorId tensor) const {
  for (const Operand& operand : step_.operands_of(facts_.replay(tensor)))
    if (operand.access == Access::read && !available(operand.tensor)) return operand.tensor;
  return {};
}

// On the device or in host memory; runs again what was dropped. The sources of a replay are
// pending until it has run: what is pending is copied out rather than dropped when it has to
// make room, so this comes to an end.
void VirtualRuntime::make_available(TensorId tensor) {
  if (available(tensor)) return;
  const auto expect = [&](TensorId made, std::int32_t change) {
    for (const Operand& operand : step_.operands_of(facts_.replay(made)))
      if (operand.access == Access::read) pending_[operand.tensor.index()] += change;
  };
  std::vector<TensorId> chain{tensor};
  require_replay(tensor);
  expect(tensor, 1);
  while (!chain.empty() && !stopped_) {
    const TensorId next = chain.back();
    if (const TensorId missing = missing_source(next); missing.valid()) {
      require_replay(missing);
      expect(missing, 1);
      chain.push_back(missing);
      continue;
    }
    execute(facts_.replay(next));
    if (stopped_) return;
    expect(next, -1);
    for (const Operand& operand : step_.operands_of(facts_.replay(next)))
      if (operand.access == Access::read) settle_tensor(operand.tensor, false);
    chain.pop_back();
  }
}

void VirtualRuntime::require_replay(TensorId tensor) const {
  if (!facts_.replay(tensor).valid()) throw Error("{} is gone and cannot be made again", tensor_name(step_, tensor));
}

void VirtualRuntime::bring_together(TaskId task) {
  fresh_.clear();
  for (const Operand& operand : step_.operands_of(task)) {
    const StorageId id = storage(operand.tensor);
    if (!fixed(id) && std::find(fresh_.begin(), fresh_.end(), id) == fresh_.end()) fresh_.push_back(id);
  }
  if (try_to_bring_together(task)) return;
  evict_all();
  if (!try_to_bring_together(task)) throw Error("{} does not fit into its own floor", task_name(step_, task));
}

// Locks the task's storages on the device, allocating and fetching where needed. False,
// with nothing locked, where there is no room beside what is locked.
bool VirtualRuntime::try_to_bring_together(TaskId task) {
  std::vector<StorageId> locked;
  bool room = true;
  for (const StorageId id : fresh_) {
    if (!cache_.contains(key(id))) continue;
    cache_.lock(key(id));
    locked.push_back(id);
  }
  for (const StorageId id : fresh_) {
    if (!room) break;
    if (!cache_.contains(key(id))) {
      room = allocate(id);
      if (!room) break;
      cache_.lock(key(id));
      locked.push_back(id);
    }
  }
  // The smallest workspace is part of the room.
  const Bytes least = step_.algorithms_of(task)[smallest_algorithm(step_, task)].workspace.aligned();
  while (room && !least.is_zero() && !choose_hole(least, false)) {
    const auto victims = cache_.victims(least);
    if (!victims)
      room = false;
    else
      for (const TensorCache::Key victim : victims->keys) evict(StorageId(victim));
  }
  if (room) {
    for (const Operand& operand : step_.operands_of(task)) {
      const StorageId id = storage(operand.tensor);
      if (operand.access == Access::write || record_.holds(operand.tensor, Tier::device)) continue;
      copy_in(id);
    }
  }
  for (const StorageId id : locked) cache_.unlock(key(id));
  if (room)
    for (const StorageId id : fresh_) cache_.lock(key(id));
  return room;
}

bool VirtualRuntime::launch(TaskId task) {
  if (record_.next_op() > most_ops_) stopped_ = true;
  if (stopped_) return false;
  double start = clock_.free[Lane::compute];
  for (const StorageId id : fresh_) {
    const auto begin = cache_.address(key(id)).count();
    start = std::max({start, clock_.device_ready[id.index()], ready_time(begin, begin + size(id).count())});
  }
  // The fastest algorithm that the free bytes allow, waiting for a hole included.
  const auto& algorithms = step_.algorithms_of(task);
  std::uint32_t best = 0;
  Bytes workspace;
  double best_end = 0;
  bool found = false;
  for (std::uint32_t a = 0; a < algorithms.size(); ++a) {
    double begin = start;
    Bytes address;
    if (!algorithms[a].workspace.is_zero()) {
      const std::optional<Hole> hole = choose_hole(algorithms[a].workspace.aligned(), false);
      if (!hole) continue;
      begin = std::max(begin, hole->ready);
      address = hole->address;
    }
    const double end = begin + compute_seconds(step_, cost_, task, a);
    if (found && end >= best_end) continue;
    best = a;
    best_end = end;
    workspace = address;
    found = true;
  }
  if (!found) throw Error("no workspace for {}", task_name(step_, task));
  record_.run(task, best, bottom_ + workspace);
  clock_.free[Lane::compute] = best_end;
  for (const Operand& operand : step_.operands_of(task)) {
    const StorageId id = storage(operand.tensor);
    clock_.device_ready[id.index()] =
        operand.access == Access::read ? clock_.device_ready[id.index()] : clock_.free[Lane::compute];
    // What was copied out earlier is out of date; a replay makes the same again. What rests
    // keeps its place for the new value.
    const bool remade = step_.task(task).kind == TaskKind::replay && record_.holds(operand.tensor, Tier::host);
    if (operand.access != Access::read && !remade && !facts_.rests(id) && record_.has(id, Tier::host))
      record_.close(id, Tier::host);
  }
  return true;
}

void VirtualRuntime::settle(TaskId task) {
  const bool ordered = task.index() < step_.ordered_tasks;
  for (const StorageId id : fresh_) {
    cache_.unlock(key(id));
    cache_.touch(key(id));
  }
  for (const Operand& operand : step_.operands_of(task)) settle_tensor(operand.tensor, ordered);
}

// Lets go of what is dead, and with the memory-centric strategy of what can be made again.
void VirtualRuntime::settle_tensor(TensorId tensor, bool read_by_ordered) {
  const StorageId id = storage(tensor);
  if (fixed(id) || !record_.holds(tensor, Tier::device)) return;
  const bool waited_for = pending_[tensor.index()] > 0;
  // Nobody needs it before the next step: back to where it rests, while there is time.
  if (facts_.rests(id) && !waited_for && facts_.next_use(tensor, done_) == kNever) {
    evict(id);
    return;
  }
  if (!waited_for && !needed(tensor)) {
    release(id);
    return;
  }
  if (!waited_for && rules_.recompute == Recompute::memory && may_drop(tensor) && done_ >= facts_.first_backward()) {
    const std::int32_t next = facts_.next_use(tensor, done_);
    const std::int32_t now = step_.tasks[static_cast<std::size_t>(done_)].step;
    const bool at_once =
        read_by_ordered && next != kNever && step_.tasks[static_cast<std::size_t>(next)].step <= now + 1;
    if (!at_once && next != done_ + 1) {
      release(id);
      return;
    }
  }
  update_rank(id);
}

}  // namespace tide
