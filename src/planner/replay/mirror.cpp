#include "planner/replay/mirror.h"

#include <algorithm>

namespace tide {
namespace {

// By tensor: the ordered task whose result overwrites it in place; invalid where none does.
std::vector<TaskId> overwriters(const Step& step) {
  std::vector<TaskId> result(step.tensors.size());
  std::vector<TensorId> newest(step.storages.size());
  for (std::size_t s = 0; s < step.storages.size(); ++s) newest[s] = step.storages[s].entry;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    for (const Operand& operand : step.operands_of(TaskId(t))) {
      if (operand.access == Access::read) continue;
      TensorId& before = newest[step.tensor(operand.tensor).storage.index()];
      if (before.valid() && before != operand.tensor) result[before.index()] = TaskId(t);
      before = operand.tensor;
    }
  }
  return result;
}

class Mirror {
 public:
  Mirror(const StepFacts& facts, const std::vector<bool>& replayable, MirrorCounts counts)
      : facts_(facts), step_(facts.step()), counts_(std::move(counts)), record_(step_) {
    for (std::size_t t = 0; t < counts_.size(); ++t)
      if (!replayable[t]) counts_[t] = 0;
    join_in_place();
    count_uses();
  }

  Draft play() && {
    for (std::int32_t p = 0; p < facts_.tasks(); ++p) {
      const TaskId task(static_cast<std::size_t>(p));
      const bool backward = p >= facts_.first_backward();
      for (const Operand& operand : step_.operands_of(task))
        if (backward && operand.access != Access::write && !persistent(operand.tensor))
          demand(operand.tensor, count(operand.tensor));
      record_.open_operands(task);
      record_.run(task);
      for (const Operand& operand : step_.operands_of(task))
        if (operand.access != Access::write && !persistent(operand.tensor))
          release(operand.tensor, backward ? count(operand.tensor) : 0);
      for (const Operand& operand : step_.operands_of(task)) settle(operand.tensor);
      drain();
    }
    return std::move(record_).finish();
  }

 private:
  // One run of a forward task: the first (0) or a later one.
  struct Copy {
    TaskId task;
    std::int32_t number;
  };

  [[nodiscard]] StorageId storage(TensorId tensor) const { return step_.tensor(tensor).storage; }
  [[nodiscard]] bool persistent(TensorId tensor) const { return step_.storage(storage(tensor)).persistent; }
  [[nodiscard]] std::int32_t count(TensorId tensor) const { return tensor_counts_[tensor.index()]; }
  [[nodiscard]] TaskId replay(TaskId task) const { return step_.replay_of[task.index()]; }
  // How many reads of one copy of a tensor are to come.
  std::int32_t& uses(TensorId tensor, std::int32_t number) {
    return uses_[first_use_[tensor.index()] + static_cast<std::size_t>(number)];
  }
  // For how many of these a copy of a task has to be run; -1: it was, or need not be any more.
  std::int32_t& needs(Copy copy) {
    return needs_[first_need_[copy.task.index()] + static_cast<std::size_t>(copy.number)];
  }

  void join_in_place() {
    const std::vector<TaskId> over = overwriters(step_);
    for (std::size_t t = static_cast<std::size_t>(facts_.first_backward()); t-- > 0;)
      for (const Operand& operand : step_.operands_of(TaskId(t)))
        if (const TaskId next = over[operand.tensor.index()];
            operand.access != Access::read && next.valid() && counts_[t] > 0)
          counts_[t] = counts_[next.index()] = std::min(counts_[t], counts_[next.index()]);
    // Once more from the other end: a chain has the smallest count of all.
    for (std::size_t t = 0; t < static_cast<std::size_t>(facts_.first_backward()); ++t)
      for (const Operand& operand : step_.operands_of(TaskId(t)))
        if (const TaskId next = over[operand.tensor.index()];
            operand.access != Access::read && next.valid() && counts_[t] < counts_[next.index()])
          counts_[next.index()] = counts_[t];
  }

  void count_uses() {
    tensor_counts_.assign(step_.tensors.size(), 0);
    levels_.assign(step_.tensors.size(), 0);
    first_need_.resize(step_.ordered_tasks);
    std::size_t needs = 0;
    for (std::size_t t = 0; t < step_.ordered_tasks; ++t) {
      first_need_[t] = needs;
      needs += static_cast<std::size_t>(counts_[t]) + 1;
      if (counts_[t] == 0) continue;
      for (const Operand& operand : step_.operands_of(replay(TaskId(t))))
        if (operand.access != Access::read) tensor_counts_[operand.tensor.index()] = counts_[t];
    }
    needs_.assign(needs, 0);
    first_use_.resize(step_.tensors.size());
    std::size_t uses = 0;
    for (std::size_t t = 0; t < step_.tensors.size(); ++t) {
      first_use_[t] = uses;
      uses += static_cast<std::size_t>(tensor_counts_[t]) + 1;
    }
    uses_.assign(uses, 0);
    for (std::int32_t p = 0; p < facts_.tasks(); ++p)
      for (const Operand& operand : step_.operands_of(TaskId(static_cast<std::size_t>(p))))
        if (operand.access != Access::write)
          add_use(operand.tensor, p < facts_.first_backward() ? 0 : count(operand.tensor));
    // Whoever reads comes later, so that its needs are known.
    for (auto t = static_cast<std::size_t>(facts_.first_backward()); t-- > 0;)
      for (std::int32_t number = counts_[t]; number > 0; --number)
        if (this->needs({TaskId(t), number}) > 0)
          for (const Operand& operand : step_.operands_of(replay(TaskId(t))))
            if (operand.access == Access::read) add_use(operand.tensor, std::min(number, count(operand.tensor)));
  }

  void add_use(TensorId tensor, std::int32_t number) {
    if (persistent(tensor)) return;
    ++uses(tensor, number);
    if (number > 0) ++needs({facts_.producer(tensor), number});
  }

  // Has a copy of a tensor on the device, by running again what it takes.
  void demand(TensorId wanted, std::int32_t number) {
    if (record_.holds(wanted, Tier::device)) return raise(wanted, number);
    std::vector<Copy> chain{{facts_.producer(wanted), number}};
    while (!chain.empty()) {
      const Copy copy = chain.back();
      if (copy.number == 0) throw Error("{} is gone, though nothing may drop it", task_name(step_, copy.task));
      TensorId missing;
      for (const Operand& operand : step_.operands_of(replay(copy.task))) {
        if (operand.access != Access::read || persistent(operand.tensor)) continue;
        if (record_.holds(operand.tensor, Tier::device))
          raise(operand.tensor, std::min(copy.number, count(operand.tensor)));
        else
          missing = operand.tensor;
      }
      if (missing.valid()) {
        chain.push_back({facts_.producer(missing), std::min(copy.number, count(missing))});
      } else {
        run_again(copy);
        chain.pop_back();
      }
    }
    drain();
  }

  void run_again(Copy copy) {
    const TaskId again = replay(copy.task);
    record_.open_operands(again);
    record_.run(again);
    needs(copy) = -1;
    for (const Operand& operand : step_.operands_of(again))
      if (operand.access != Access::read) raise(operand.tensor, copy.number);
    for (const Operand& operand : step_.operands_of(again))
      if (operand.access == Access::read) release(operand.tensor, std::min(copy.number, count(operand.tensor)));
    for (const Operand& operand : step_.operands_of(again)) settle(operand.tensor);
  }

  // What is there may serve for a later copy too: it is the same value.
  void raise(TensorId tensor, std::int32_t number) {
    std::int32_t& level = levels_[tensor.index()];
    while (level < number) {
      ++level;
      lessen({facts_.producer(tensor), level}, uses(tensor, level));
    }
  }

  void release(TensorId tensor, std::int32_t number) {
    if (persistent(tensor)) return;
    --uses(tensor, number);
    if (number > levels_[tensor.index()]) lessen({facts_.producer(tensor), number}, 1);
    settle(tensor);
  }

  void lessen(Copy copy, std::int32_t served) {
    std::int32_t& open = needs(copy);
    if (open < 0 || served == 0) return;
    open -= served;
    if (open == 0) idle_.push_back(copy);
  }

  // Copies that nobody waits for any more read nothing.
  void drain() {
    while (!idle_.empty()) {
      const Copy copy = idle_.back();
      idle_.pop_back();
      if (needs(copy) != 0) continue;
      needs(copy) = -1;
      for (const Operand& operand : step_.operands_of(replay(copy.task)))
        if (operand.access == Access::read) release(operand.tensor, std::min(copy.number, count(operand.tensor)));
    }
  }

  void settle(TensorId tensor) {
    if (persistent(tensor) || !record_.holds(tensor, Tier::device)) return;
    for (std::int32_t number = 0; number <= levels_[tensor.index()]; ++number)
      if (uses(tensor, number) > 0) return;
    record_.close(storage(tensor), Tier::device);
  }

  const StepFacts& facts_;
  const Step& step_;
  MirrorCounts counts_;
  Recorder record_;
  std::vector<std::int32_t> tensor_counts_;  // 0 for what a replay does not make, such as statistics
  std::vector<std::int32_t> levels_;         // by tensor: the highest copy that it has served for
  std::vector<std::size_t> first_use_, first_need_;
  std::vector<std::int32_t> uses_, needs_;
  std::vector<Copy> idle_;
};

}  // namespace

std::vector<bool> replayable_tasks(const StepFacts& facts) {
  const Step& step = facts.step();
  const std::vector<TaskId> over = overwriters(step);
  const auto forward = static_cast<std::size_t>(facts.first_backward());
  // Bytes that a result in place takes over can come back only on the way to that result, so the
  // two must be alone with each other.
  const auto overwritten_simply = [&](TensorId tensor, TaskId producer) {
    const TaskId next = over[tensor.index()];
    if (!next.valid()) return true;
    const auto uses = facts.uses(tensor);
    const auto writes = [&](TaskId task) {
      return std::count_if(step.operands_of(task).begin(), step.operands_of(task).end(),
                           [](const Operand& operand) { return operand.access != Access::read; });
    };
    return next.index() < forward && step.replay_of[next.index()].valid() && uses.size() == 2 &&
           writes(step.replay_of[producer.index()]) == 1 && writes(step.replay_of[next.index()]) == 1;
  };
  // By tensor: the last task that may ask for it, itself or for what is run again from it.
  std::vector<std::int32_t> asked(step.tensors.size(), -1);
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const auto uses = facts.uses(TensorId(t));
    if (!uses.empty() && uses.back() >= facts.first_backward()) asked[t] = uses.back();
  }
  std::vector<bool> result(step.ordered_tasks, false);
  for (std::size_t t = forward; t-- > 0;) {
    const TaskId again = step.replay_of[t];
    if (!again.valid()) continue;
    std::int32_t until = -1;
    for (const Operand& operand : step.operands_of(again))
      if (operand.access != Access::read) until = std::max(until, asked[operand.tensor.index()]);
    for (const Operand& operand : step.operands_of(again))
      if (operand.access == Access::read)
        asked[operand.tensor.index()] = std::max(asked[operand.tensor.index()], until);
    result[t] =
        std::all_of(step.operands_of(again).begin(), step.operands_of(again).end(), [&](const Operand& operand) {
          const Storage& storage = step.storage(step.tensor(operand.tensor).storage);
          if (operand.access != Access::read)
            return !storage.persistent && overwritten_simply(operand.tensor, TaskId(t));
          // Weights are there as they were until their update.
          if (storage.persistent) return facts.last_use(operand.tensor) > until;
          return !over[operand.tensor.index()].valid() || over[operand.tensor.index()] == TaskId(t);
        });
  }
  // A result in place goes with what it overwrites.
  for (std::size_t t = 0; t < forward; ++t)
    for (const Operand& operand : step.operands_of(TaskId(t)))
      if (const TaskId next = over[operand.tensor.index()];
          operand.access != Access::read && next.valid() && next.index() < forward && !result[t])
        result[next.index()] = false;
  return result;
}

Draft mirror(const StepFacts& facts, const std::vector<bool>& replayable, MirrorCounts counts) {
  return Mirror(facts, replayable, std::move(counts)).play();
}

}  // namespace tide
