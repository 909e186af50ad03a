#include "planner/replay/techniques.h"

#include <algorithm>

#include "planner/draft/returning.h"

namespace tide {
namespace {

// The tensor that a replay works on, as opposed to weights and statistics.
TensorId data_source(const Step& step, TaskId replay) {
  for (const Operand& operand : step.operands_of(replay))
    if (operand.access == Access::read && operand.role == Role::x) return operand.tensor;
  return {};
}

class Performer {
 public:
  Performer(const StepFacts& facts, const Techniques& techniques)
      : facts_(facts),
        step_(facts.step()),
        techniques_(techniques),
        record_(step_, facts.resting()),
        returning_(facts, record_) {
    find_segments();
    if (techniques_.prefetch_previous) find_triggers();
  }

  Draft perform() && {
    for (position_ = 0; position_ < facts_.tasks(); ++position_) {
      const TaskId task(static_cast<std::size_t>(position_));
      ran_ = false;
      prefetch();
      gather(task);
      record_.run(task);
      ran_ = true;
      for (const Operand& operand : step_.operands_of(task)) after_use(operand.tensor);
      release_heads();
    }
    return std::move(record_).finish();
  }

 private:
  [[nodiscard]] bool leaves(TensorId tensor) const { return techniques_.leaves[tensor.index()]; }
  [[nodiscard]] bool drops(TensorId tensor) const { return techniques_.drops[tensor.index()]; }
  [[nodiscard]] bool memory_centric(TensorId tensor) const { return techniques_.memory_centric[tensor.index()]; }
  [[nodiscard]] StorageId storage(TensorId tensor) const { return step_.tensor(tensor).storage; }
  [[nodiscard]] bool backward() const { return position_ >= facts_.first_backward(); }

  void find_segments() {
    const std::vector<TensorId> heads = segment_heads(facts_, techniques_.drops);
    segment_end_.assign(step_.tensors.size(), -1);
    children_.resize(step_.tensors.size());
    held_.assign(step_.tensors.size(), false);
    ending_.resize(static_cast<std::size_t>(facts_.tasks()));
    for (std::size_t t = 0; t < step_.tensors.size(); ++t) {
      if (!drops(TensorId(t))) continue;
      auto& end = segment_end_[heads[t].index()];
      end = std::max(end, facts_.last_use(TensorId(t)));
      for (const Operand& operand : step_.operands_of(facts_.replay(TensorId(t))))
        if (operand.access == Access::read && operand.role == Role::x)
          children_[operand.tensor.index()].push_back(TensorId(t));
    }
  }

  // By position: what comes back with it.
  void find_triggers() {
    struct Left {
      std::int32_t made;
      TensorId tensor;
    };
    std::vector<Left> left;
    for (std::size_t t = 0; t < step_.tensors.size(); ++t)
      if (leaves(TensorId(t)) && facts_.producer(TensorId(t)).valid())
        left.push_back({facts_.producer(TensorId(t)).value(), TensorId(t)});
    std::sort(left.begin(), left.end(), [](const Left& a, const Left& b) { return a.made < b.made; });
    triggered_.resize(static_cast<std::size_t>(facts_.tasks()) + 1);
    if (left.empty()) return;
    // With the first backward task, what was left last.
    triggered_[static_cast<std::size_t>(facts_.first_backward())].push_back(left.back().tensor);
    // Behind the last backward task of each layer that has left something: what was left
    // before it. Updates belong to the layer's step too.
    std::vector<std::int32_t> last(step_.layer_names.size(), -1);
    for (std::int32_t p = facts_.first_backward(); p < facts_.tasks(); ++p) {
      const Task& task = step_.tasks[static_cast<std::size_t>(p)];
      if (task.kind == TaskKind::backward_data || task.kind == TaskKind::backward_weights ||
          task.kind == TaskKind::backward)
        last[task.layer.index()] = p;
    }
    for (std::size_t k = 1; k < left.size(); ++k) {
      const LayerId layer = step_.tasks[static_cast<std::size_t>(left[k].made)].layer;
      std::int32_t at = last[layer.index()];
      if (at < 0) continue;
      do ++at;
      while (at < facts_.tasks() && step_.tasks[static_cast<std::size_t>(at)].step == 0);
      triggered_[static_cast<std::size_t>(at)].push_back(left[k - 1].tensor);
    }
  }

  void prefetch() {
    if (triggered_.empty()) return;
    for (const TensorId tensor : triggered_[static_cast<std::size_t>(position_)])
      if (facts_.last_use(tensor) >= position_ && !record_.holds(tensor, Tier::device) &&
          record_.holds(tensor, Tier::host))
        fetch(tensor);
  }

  void fetch(TensorId tensor) { record_.fetch(storage(tensor)); }

  void gather(TaskId task) {
    for (const Operand& operand : step_.operands_of(task))
      if (operand.access == Access::read)
        returning_.bring(
            operand.tensor, [&](TensorId tensor) { fetch(tensor); }, [&](TensorId tensor) { replay(tensor, task); });
    record_.open_operands(task);
  }

  void replay(TensorId tensor, TaskId task) {
    const TaskId again = facts_.replay(tensor);
    record_.open_operands(again);
    record_.run(again);
    for (const Operand& operand : step_.operands_of(again)) {
      if (drops(operand.tensor)) {
        if (!read_by(task, operand.tensor) && operand.tensor != tensor) settle_dropped(operand.tensor);
      } else if (heads_of_segments(operand.tensor)) {
        hold(operand.tensor);
      } else if (facts_.rests(storage(operand.tensor))) {
        settle_resting(operand.tensor);
      }
    }
  }

  [[nodiscard]] bool heads_of_segments(TensorId tensor) const {
    return segment_end_[tensor.index()] >= 0 && leaves(tensor);
  }

  [[nodiscard]] bool read_by(TaskId task, TensorId tensor) const {
    const auto operands = step_.operands_of(task);
    return std::any_of(operands.begin(), operands.end(),
                       [&](const Operand& operand) { return operand.tensor == tensor; });
  }

  // Whether something that is still needed has to be run again from this tensor.
  [[nodiscard]] bool has_waiting_child(TensorId tensor) const {
    const auto& children = children_[tensor.index()];
    return std::any_of(children.begin(), children.end(), [&](TensorId child) {
      return facts_.last_use(child) >= position_ && !record_.holds(child, Tier::device);
    });
  }

  // The next use belongs to this step of the papers' count or to the one behind it.
  [[nodiscard]] bool used_at_once(TensorId tensor) const {
    const std::int32_t next = facts_.next_use(tensor, position_);
    if (next == kNever) return false;
    const std::int32_t now = step_.tasks[static_cast<std::size_t>(position_)].step;
    return step_.tasks[static_cast<std::size_t>(next)].step <= now + 1;
  }

  // A dropped tensor that the task at hand does not read, or has read.
  void settle_dropped(TensorId tensor) {
    if (!record_.holds(tensor, Tier::device) || returning_.is_awaited(tensor)) return;
    const bool wanted = facts_.last_use(tensor) > position_ || (facts_.last_use(tensor) == position_ && !ran_);
    const bool keep =
        memory_centric(tensor) ? ran_ && wanted && used_at_once(tensor) : wanted || has_waiting_child(tensor);
    if (!keep) record_.close(storage(tensor), Tier::device);
  }

  void after_use(TensorId tensor) {
    if (facts_.rests(storage(tensor))) return settle_resting(tensor);
    if (step_.storage(storage(tensor)).persistent) return;
    if (facts_.last_use(tensor) <= position_ && record_.holds(tensor, Tier::host))
      record_.close(storage(tensor), Tier::host);
    if (!record_.holds(tensor, Tier::device)) return;  // overwritten in place
    if (backward() && drops(tensor)) return settle_dropped(tensor);
    if (facts_.last_use(tensor) <= position_) {
      record_.close(storage(tensor), Tier::device);
      return;
    }
    if (!backward()) {
      if (facts_.next_use(tensor, position_) < facts_.first_backward()) return;
      if (drops(tensor)) {
        record_.close(storage(tensor), Tier::device);
      } else if (leaves(tensor) && !used_at_once(tensor)) {
        leave(tensor);
      }
      return;
    }
    if (!leaves(tensor) || techniques_.prefetch_previous || used_at_once(tensor)) return;
    if (segment_end_[tensor.index()] > position_ && held_[tensor.index()]) return;
    leave(tensor);
  }

  void settle_resting(TensorId tensor) {
    if (returning_.goes_back_to_rest(tensor, position_, ran_)) leave(tensor);
  }

  void leave(TensorId tensor) {
    if (!record_.holds(tensor, Tier::host)) {
      if (!record_.has(storage(tensor), Tier::host)) record_.open(storage(tensor), Tier::host);
      record_.copy(storage(tensor), Tier::device, Tier::host);
    }
    record_.close(storage(tensor), Tier::device);
  }

  // Until its segment is done with.
  void hold(TensorId head) {
    held_[head.index()] = true;
    ending_[static_cast<std::size_t>(std::max(segment_end_[head.index()], position_))].push_back(head);
  }

  // Heads whose segments are done with, and which nobody reads at once.
  void release_heads() {
    for (const TensorId head : ending_[static_cast<std::size_t>(position_)]) {
      held_[head.index()] = false;
      if (record_.holds(head, Tier::device) && !used_at_once(head) && !techniques_.prefetch_previous &&
          !step_.storage(storage(head)).persistent)
        leave(head);
    }
  }

  const StepFacts& facts_;
  const Step& step_;
  const Techniques& techniques_;
  Recorder record_;
  Returning returning_;
  std::vector<std::int32_t> segment_end_;         // by tensor that heads a segment: its last use; else -1
  std::vector<std::vector<TensorId>> children_;   // by tensor: dropped ones that are run again from it
  std::vector<std::vector<TensorId>> triggered_;  // by position
  std::vector<bool> held_;                        // by tensor: heads of the segments at work
  std::vector<std::vector<TensorId>> ending_;     // the same by the position where the segment ends
  std::int32_t position_ = 0;
  bool ran_ = false;  // whether the task of this position has run
};

}  // namespace

std::vector<TensorId> segment_heads(const StepFacts& facts, const std::vector<bool>& drops) {
  const Step& step = facts.step();
  std::vector<TensorId> heads(step.tensors.size());
  for (std::size_t t = 0; t < heads.size(); ++t) heads[t] = TensorId(t);
  // Tensors are numbered in the order in which they are made, so a source comes first.
  for (std::size_t t = 0; t < heads.size(); ++t) {
    if (!drops[t]) continue;
    const TensorId source = data_source(step, facts.replay(TensorId(t)));
    if (source.valid()) heads[t] = heads[source.index()];
  }
  return heads;
}

Techniques offloading(const StepFacts& facts, std::span<const LayerKind> kinds) {
  const Step& step = facts.step();
  const auto moves = [&](LayerKind kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  // By storage: whether a layer of these kinds, or the host in its stead, wrote it so far.
  // Results in place count with what they overwrite, since they cannot be made again alone.
  std::vector<bool> origin(step.storages.size(), false);
  Techniques techniques;
  techniques.leaves.resize(step.tensors.size());
  techniques.drops.resize(step.tensors.size());
  techniques.memory_centric.resize(step.tensors.size());
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const Tensor& tensor = step.tensors[t];
    const bool data = tensor.tensor_class == TensorClass::activation ||
                      (tensor.tensor_class == TensorClass::input && tensor.role == Role::x);
    const std::int32_t last = facts.last_use(TensorId(t));
    if (data && moves(step.layer_kinds[tensor.layer.index()])) origin[tensor.storage.index()] = true;
    techniques.leaves[t] = data && origin[tensor.storage.index()] && last >= facts.first_backward() && last != kNever;
  }
  return techniques;
}

std::int64_t backward_peak(const Step& step, const Draft& draft) {
  const std::vector<std::int64_t> live = live_data(step, draft);
  std::int64_t peak = 0;
  bool turned = false;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Op& op = draft.ops[i];
    turned = turned || (op.is_run() && step.task(op.run().task).kind != TaskKind::forward);
    if (turned) peak = std::max(peak, live[i]);
  }
  return peak;
}

Draft apply(const StepFacts& facts, const Techniques& techniques) { return Performer(facts, techniques).perform(); }

}  // namespace tide
