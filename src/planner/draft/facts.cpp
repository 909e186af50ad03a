#include "planner/draft/facts.h"

#include <algorithm>

#include "network/kind.h"

namespace tide {

std::span<const LayerKind> paper_checkpoints() {
  static const std::vector<LayerKind> kinds = kinds_with(&KindDescription::checkpoint);
  return kinds;
}

std::span<const LayerKind> paper_offloads() {
  static const std::vector<LayerKind> kinds = kinds_with(&KindDescription::offload);
  return kinds;
}

StepFacts::StepFacts(const Step& step, std::span<const LayerKind> checkpoints, Resting resting)
    : step_(step), resting_(std::move(resting)) {
  checkpoint_.assign(kLayerKinds, false);
  for (const LayerKind kind : checkpoints) checkpoint_[static_cast<std::size_t>(kind)] = true;
  find_uses();
  find_droppable();
}

void StepFacts::find_uses() {
  first_use_.assign(step_.tensors.size() + 1, 0);
  last_use_.assign(step_.tensors.size(), -1);
  producer_.resize(step_.tensors.size());
  first_backward_ = tasks();
  // A task may name a tensor twice (x + x): one use.
  const auto each_use = [&](auto&& visit) {
    for (std::int32_t t = 0; t < tasks(); ++t) {
      const auto operands = step_.operands_of(TaskId(static_cast<std::size_t>(t)));
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const bool again = std::any_of(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(k),
                                       [&](const Operand& other) { return other.tensor == operands[k].tensor; });
        if (!again) visit(t, operands[k]);
      }
    }
  };
  each_use([&](std::int32_t, const Operand& operand) { ++first_use_[operand.tensor.index() + 1]; });
  for (std::size_t t = 1; t < first_use_.size(); ++t) first_use_[t] += first_use_[t - 1];
  uses_.resize(first_use_.back());
  std::vector<std::uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  each_use([&](std::int32_t t, const Operand& operand) {
    const std::size_t tensor = operand.tensor.index();
    uses_[next[tensor]++] = t;
    last_use_[tensor] = t;
    if (operand.access != Access::read && !producer_[tensor].valid())
      producer_[tensor] = TaskId(static_cast<std::size_t>(t));
    const TaskKind kind = step_.tasks[static_cast<std::size_t>(t)].kind;
    if (kind != TaskKind::forward && !is_collective(kind)) first_backward_ = std::min(first_backward_, t);
  });
  for (const Storage& storage : step_.storages)
    if (storage.persistent && storage.exit.valid()) last_use_[storage.exit.index()] = kNever;
}

std::int32_t StepFacts::next_use(TensorId tensor, std::int32_t position) const {
  const auto list = uses(tensor);
  const auto it = std::upper_bound(list.begin(), list.end(), position);
  return it == list.end() ? kNever : *it;
}

TaskId StepFacts::replay(TensorId tensor) const {
  const TaskId task = producer(tensor);
  return task.valid() ? step_.replay_of[task.index()] : TaskId();
}

void StepFacts::keep(const std::vector<bool>& heads) {
  for (std::size_t t = 0; t < heads.size(); ++t)
    if (heads[t]) droppable_[t] = false;
}

void StepFacts::find_droppable() {
  droppable_.assign(step_.tensors.size(), false);
  if (first_backward_ == tasks()) return;  // forward only: nothing is needed again
  // In-place results: a tensor whose bytes another one takes over cannot come back later,
  // except on the way to that other one.
  std::vector<TensorId> newest(step_.storages.size());
  for (std::int32_t t = 0; t < tasks(); ++t)
    for (const Operand& operand : step_.operands_of(TaskId(static_cast<std::size_t>(t))))
      if (operand.access != Access::read) newest[step_.tensor(operand.tensor).storage.index()] = operand.tensor;

  // By tensor: until when it can be had, from where it is or by running it again.
  std::vector<std::int32_t> reach(step_.tensors.size(), -1);
  for (std::size_t s = 0; s < step_.storages.size(); ++s) {
    const Storage& storage = step_.storages[s];
    if (storage.entry.valid()) reach[storage.entry.index()] = last_use(storage.entry);
  }
  for (std::size_t t = 0; t < static_cast<std::size_t>(first_backward_); ++t) {
    const Task& task = step_.tasks[t];
    const TaskId again = step_.replay_of[t];
    for (const Operand& operand : step_.operands_of(TaskId(t)))
      if (operand.access != Access::read) reach[operand.tensor.index()] = last_use(operand.tensor);
    std::int32_t sources = -1;
    if (again.valid() && !is_checkpoint(step_.layer_kind(task))) {
      StorageId target;
      for (const Operand& operand : step_.operands_of(again))
        if (operand.role == Role::y) target = step_.tensor(operand.tensor).storage;
      sources = kNever;
      for (const Operand& operand : step_.operands_of(again)) {
        if (operand.access != Access::read) continue;
        const Tensor& source = step_.tensor(operand.tensor);
        const bool comes_back = source.storage == target || newest[source.storage.index()] == operand.tensor;
        sources = std::min(sources, comes_back ? reach[operand.tensor.index()] : last_use(operand.tensor));
      }
    }
    for (const Operand& operand : step_.operands_of(TaskId(t))) {
      if (operand.access == Access::read) continue;
      const std::size_t made = operand.tensor.index();
      if (operand.role != Role::y && operand.role != Role::indices) continue;
      // A replay makes everything anew that the task made, so none of it may have given its
      // bytes to something else by then.
      std::int32_t remade = sources;
      for (const Operand& other : step_.operands_of(again.valid() ? again : TaskId(t))) {
        const bool keeps_bytes = newest[step_.tensor(other.tensor).storage.index()] == other.tensor;
        if (other.access != Access::read && other.tensor != operand.tensor && !keeps_bytes)
          remade = std::min(remade, last_use(other.tensor));
      }
      reach[made] = std::max(reach[made], remade);
      droppable_[made] = remade >= last_use_[made] && !step_.storage(step_.tensor(operand.tensor).storage).persistent;
    }
  }
}

}  // namespace tide
