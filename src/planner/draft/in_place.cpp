#include "planner/draft/in_place.h"

#include <algorithm>
#include <utility>

namespace tide {
namespace {

// By tensor: the last ordered task that reads it or adds to it; -1 if none does.
std::vector<std::int32_t> last_uses(const Step& step) {
  std::vector<std::int32_t> last(step.tensors.size(), -1);
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    for (const Operand& operand : step.operands_of(TaskId(t)))
      last[operand.tensor.index()] = static_cast<std::int32_t>(t);
  return last;
}

bool may_be_overwritten(const Storage& storage) {
  // The batch belongs to the host, persistent values to the next step.
  return !storage.persistent && storage.tensor_class != TensorClass::input;
}

// What running a forward task again makes.
std::ptrdiff_t remade(const Step& step, TaskId task) {
  const auto operands = step.operands_of(step.replay_of[task.index()]);
  return std::count_if(operands.begin(), operands.end(),
                       [](const Operand& operand) { return operand.access != Access::read; });
}

// By tensor: whether the forward task that makes it makes nothing else, and one other task uses it.
std::vector<bool> made_for_one(const Step& step) {
  std::vector<std::int32_t> users(step.tensors.size(), 0), newest(step.tensors.size(), -1);
  std::vector<bool> alone(step.tensors.size(), false);
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    for (const Operand& operand : step.operands_of(TaskId(t))) {
      const std::size_t tensor = operand.tensor.index();
      if (std::exchange(newest[tensor], static_cast<std::int32_t>(t)) != static_cast<std::int32_t>(t)) ++users[tensor];
      if (operand.access == Access::write && step.replay_of[t].valid()) alone[tensor] = remade(step, TaskId(t)) == 1;
    }
  }
  for (std::size_t t = 0; t < alone.size(); ++t) alone[t] = alone[t] && users[t] == 2;
  return alone;
}

// The tensors of each storage, as chains: there are too many storages for a list each.
class Tenants {
 public:
  explicit Tenants(const Step& step) : first_(step.storages.size()), last_(first_), next_(step.tensors.size()) {
    for (std::size_t t = 0; t < step.tensors.size(); ++t) append(step.tensors[t].storage, TensorId(t), TensorId(t));
  }

  [[nodiscard]] bool any(StorageId storage) const { return first_[storage.index()].valid(); }
  // Moves all of one storage into another.
  void move(StorageId from, StorageId to, Step& step) {
    const TensorId first = std::exchange(first_[from.index()], {});
    const TensorId last = std::exchange(last_[from.index()], {});
    for (TensorId tensor = first; tensor.valid(); tensor = next_[tensor.index()])
      step.tensors[tensor.index()].storage = to;
    if (first.valid()) append(to, first, last);
  }

 private:
  void append(StorageId storage, TensorId first, TensorId last) {
    const TensorId before = std::exchange(last_[storage.index()], last);
    (before.valid() ? next_[before.index()] : first_[storage.index()]) = first;
  }

  std::vector<TensorId> first_, last_;  // by storage
  std::vector<TensorId> next_;          // by tensor
};

template <typename Allow>
Step merge(Step step, Allow allow) {
  // The paper's rules say themselves what shares memory.
  if (step.options.rules == Rules::superneurons) return step;
  const std::vector<std::int32_t> last = last_uses(step);
  Tenants tenants(step);  // rules may have merged some already
  std::vector<StorageId> taken;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const Task& task = step.tasks[t];
    const auto operands = step.operands_of(task);
    taken.clear();
    for (const InPlacePair pair : step.in_place_of(task)) {
      const TensorId source = operands[static_cast<std::size_t>(pair.source)].tensor;
      const TensorId target = operands[static_cast<std::size_t>(pair.target)].tensor;
      const StorageId from = step.tensor(source).storage;
      const StorageId to = step.tensor(target).storage;
      const Storage& kept = step.storage(from);
      const bool done_already = std::find(taken.begin(), taken.end(), to) != taken.end();
      const bool source_taken = std::find(taken.begin(), taken.end(), from) != taken.end();
      if (!allow(TaskId(t), source)) continue;
      if (from == to || done_already || source_taken || last[source.index()] != static_cast<std::int32_t>(t)) continue;
      if (!may_be_overwritten(kept) || !may_be_overwritten(step.storage(to)) || kept.bytes != step.storage(to).bytes)
        continue;
      tenants.move(to, from, step);
      taken.push_back(from);
    }
  }

  // Drop the storages that nothing lives in any more.
  std::vector<StorageId> renamed(step.storages.size());
  std::vector<Storage> kept;
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    if (!tenants.any(StorageId(s))) continue;
    renamed[s] = StorageId(kept.size());
    kept.push_back(step.storages[s]);
  }
  for (Tensor& tensor : step.tensors) tensor.storage = renamed[tensor.storage.index()];
  step.storages = std::move(kept);
  return step;
}

}  // namespace

Step merge_in_place(Step step) {
  return merge(std::move(step), [](TaskId, TensorId) { return true; });
}

Step merge_replayable(Step step) {
  const std::vector<bool> alone = made_for_one(step);
  std::vector<bool> remade_later(step.tensors.size(), false);
  for (const TaskId again : step.replay_of)
    if (again.valid())
      for (const Operand& operand : step.operands_of(again))
        if (operand.access != Access::read) remade_later[operand.tensor.index()] = true;
  // By task: what it may take over.
  enum class Takes : std::uint8_t { anything, made_once, made_for_it, nothing };
  std::vector<Takes> takes(step.ordered_tasks, Takes::anything);
  for (std::size_t t = 0; t < takes.size(); ++t) {
    if (step.tasks[t].kind != TaskKind::forward) takes[t] = Takes::made_once;
    if (step.replay_of[t].valid()) takes[t] = remade(step, TaskId(t)) == 1 ? Takes::made_for_it : Takes::nothing;
  }
  return merge(std::move(step), [&](TaskId task, TensorId source) {
    switch (takes[task.index()]) {
      case Takes::anything: return true;
      case Takes::made_once: return !remade_later[source.index()];
      case Takes::made_for_it: return static_cast<bool>(alone[source.index()]);
      case Takes::nothing: break;
    }
    return false;
  });
}

}  // namespace tide
