#include "planner/joint/absence.h"

#include <algorithm>
#include <utility>

#include "planner/draft/returning.h"

namespace tide {
namespace {

class Player {
 public:
  Player(const StepFacts& facts, const Replays& replays, const Absences& absences)
      : facts_(facts),
        step_(facts.step()),
        replays_(replays),
        absences_(absences),
        record_(step_, facts.resting()),
        returning_(facts, record_),
        touched_(step_.tensors.size()) {}

  std::optional<Played> perform(std::size_t most) && {
    for (position_ = 0; position_ < facts_.tasks(); ++position_) {
      if (static_cast<std::size_t>(record_.next_op()) > most) return std::nullopt;
      const TaskId task(static_cast<std::size_t>(position_));
      task_ = task;
      ran_ = false;
      for (const Operand& operand : step_.operands_of(task))
        if (operand.access == Access::read) materialize(operand.tensor);
      run(task);
      ran_ = true;
      for (const Operand& operand : step_.operands_of(task)) settle(operand.tensor);
      for (const TensorId tensor : std::exchange(early_, {})) settle(tensor);
    }
    played_.draft = std::move(record_).finish();
    return std::move(played_);
  }

 private:
  [[nodiscard]] StorageId storage(TensorId tensor) const { return step_.tensor(tensor).storage; }

  struct Touch {
    std::int32_t op = -1, position = -1;
    bool away = false;
  };

  void run(TaskId task) {
    record_.open_operands(task);
    const std::int32_t op = record_.run(task);
    for (const Operand& operand : step_.operands_of(task)) touch(operand.tensor, op);
  }

  void fetch(TensorId tensor) { touch(tensor, record_.fetch(storage(tensor))); }

  void touch(TensorId tensor, std::int32_t op) {
    Touch& last = touched_[tensor.index()];
    if (last.op >= 0 && op > last.op + 1)
      (last.away ? played_.away : played_.idle)
          .push_back({tensor, last.position, last.op + 1, op - 1, record_.holds(tensor, Tier::host)});
    last = {op, position_, false};
  }

  void materialize(TensorId wanted) {
    returning_.bring(
        wanted,
        [&](TensorId tensor) {
          fetch(tensor);
          early_.push_back(tensor);
        },
        [&](TensorId tensor) { replay(tensor); });
  }

  void replay(TensorId tensor) {
    const TaskId again = facts_.replay(tensor);
    run(again);
    for (const Operand& operand : step_.operands_of(again)) {
      early_.push_back(operand.tensor);
      if (operand.tensor != tensor) settle(operand.tensor);
    }
  }

  [[nodiscard]] bool at_hand(TensorId tensor) const {
    if (ran_) return false;
    const auto operands = step_.operands_of(task_);
    return std::any_of(operands.begin(), operands.end(),
                       [&](const Operand& operand) { return operand.tensor == tensor; });
  }

  [[nodiscard]] std::int32_t done() const { return ran_ ? position_ : position_ - 1; }
  [[nodiscard]] bool is_needed(TensorId tensor) const { return facts_.is_used_behind(tensor, done()); }

  // Whether something that is still needed will be run again from it.
  [[nodiscard]] bool has_waiting_child(TensorId tensor, int depth = 0) const {
    constexpr int kDeepest = 4;  // of values that are needed for no other reason
    if (replays_.last_use_of_made(tensor) <= done()) return false;
    const auto& children = replays_.made_from(tensor);
    return std::any_of(children.begin(), children.end(), [&](TensorId child) {
      if (facts_.producer(child).value() >= position_ || record_.holds(child, Tier::device) ||
          record_.holds(child, Tier::host))
        return false;
      return is_needed(child) || (depth < kDeepest && has_waiting_child(child, depth + 1));
    });
  }

  // What was touched and is not at work any more.
  void settle(TensorId tensor) {
    const StorageId place = storage(tensor);
    if (facts_.rests(place)) return settle_resting(tensor);
    if (step_.storage(place).persistent) return;
    const bool over = !is_needed(tensor);
    if (over && record_.holds(tensor, Tier::host) && !has_waiting_child(tensor)) record_.close(place, Tier::host);
    Touch& last = touched_[tensor.index()];
    if (!record_.holds(tensor, Tier::device)) {
      if (!last.away) last.op = -1;  // overwritten, or over
      return;
    }
    if (returning_.is_awaited(tensor) || at_hand(tensor)) return;
    if (over && !has_waiting_child(tensor)) {
      last.op = -1;
      return record_.close(place, Tier::device);
    }
    const Away away = absences_.after(tensor, position_);
    if (away == Away::kept) return;
    if (away == Away::left) send(tensor);
    record_.close(place, Tier::device);
    last.away = true;
  }

  void settle_resting(TensorId tensor) {
    if (!returning_.goes_back_to_rest(tensor, position_, ran_)) return;
    send(tensor);
    record_.close(storage(tensor), Tier::device);
  }

  void send(TensorId tensor) {
    if (record_.holds(tensor, Tier::host)) return;
    if (!record_.has(storage(tensor), Tier::host)) record_.open(storage(tensor), Tier::host);
    touched_[tensor.index()].op = record_.copy(storage(tensor), Tier::device, Tier::host);
  }

  const StepFacts& facts_;
  const Step& step_;
  const Replays& replays_;
  const Absences& absences_;
  Recorder record_;
  Returning returning_;
  Played played_;
  std::vector<Touch> touched_;   // by tensor: the newest
  std::vector<TensorId> early_;  // what came back at this position
  std::int32_t position_ = 0;
  TaskId task_;
  bool ran_ = false;  // whether the task of this position has run
};

}  // namespace

void Absences::decide(TensorId tensor, std::int32_t position, Away away) {
  auto& decisions = list_[tensor.index()];
  const auto it =
      std::find_if(decisions.begin(), decisions.end(), [&](const Decision& d) { return d.position == position; });
  if (it != decisions.end())
    it->away = away;
  else
    decisions.push_back({position, away});
}

Away Absences::after(TensorId tensor, std::int32_t position) const {
  for (const Decision& decision : list_[tensor.index()])
    if (decision.position == position) return decision.away;
  return Away::kept;
}

Replays::Replays(const StepFacts& facts)
    : made_from_(facts.step().tensors.size()), last_use_(facts.step().tensors.size(), -1) {
  // Tensors are numbered in the order in which they are made, so what is made of one has a higher number.
  for (std::size_t t = made_from_.size(); t-- > 0;) {
    const TaskId again = facts.replay(TensorId(t));
    if (!again.valid()) continue;
    const auto uses = facts.uses(TensorId(t));
    const std::int32_t last = std::max(last_use_[t], uses.empty() ? -1 : uses.back());
    for (const Operand& operand : facts.step().operands_of(again)) {
      if (operand.access != Access::read) continue;
      made_from_[operand.tensor.index()].push_back(TensorId(t));
      last_use_[operand.tensor.index()] = std::max(last_use_[operand.tensor.index()], last);
    }
  }
}

std::optional<Played> play(const StepFacts& facts, const Replays& replays, const Absences& absences, std::size_t most) {
  return Player(facts, replays, absences).perform(most);
}

}  // namespace tide
