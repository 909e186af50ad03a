// vDNN (M. Rhu et al., 2016), as the papers that build on it describe it: a layer's input leaves
// while the layer runs, and comes back while the backward tasks of the layer behind it run. Each
// copy begins with one layer and the next layer waits for its end.
//
//   forward    [ layer n  ]   [ layer n + 1 ]      backward   [ layer n + 1 ]  [ layer n ]
//              [ x of n out ]                                 [ x of n in     ]
#include "planner/vdnn/vdnn.h"

#include <algorithm>
#include <functional>

#include "cost/algorithms.h"
#include "network/kind.h"
#include "planner/draft/in_place.h"
#include "planner/draft/recorder.h"
#include "planner/finish/finish.h"
#include "planner/vdnn/turns.h"

namespace tide {
namespace {

bool is_convolution(LayerKind kind) {
  const Product product = description_of(kind).product;
  return product == Product::convolution || product == Product::transposed_convolution;
}

class Virtualizer {
 public:
  Virtualizer(const StepFacts& facts, const Turns& turns, bool all_layers, TriggerOptions triggers = {})
      : facts_(facts),
        step_(facts.step()),
        turns_(turns),
        triggers_(std::move(triggers)),
        record_(step_),
        leaves_(step_.tensors.size(), false) {
    for (std::int32_t p = 0; p < facts.first_backward(); ++p) {
      const TaskId task(static_cast<std::size_t>(p));
      for (const Operand& operand : step_.operands_of(task))
        if (operand.role == Role::x && (all_layers || is_convolution(step_.layer_kind(step_.task(task)))))
          leaves_[operand.tensor.index()] = true;
    }
  }

  // Of what could leave, only these do.
  void leave_only(const std::vector<TensorId>& tensors) {
    leaves_.assign(leaves_.size(), false);
    for (const TensorId tensor : tensors) leaves_[tensor.index()] = true;
  }

  Draft perform() {
    for (std::size_t turn = 0; turn < turns_.count(); ++turn) {
      if (triggers_.early)
        fetch_triggered(turn);
      else
        prefetch(turn);
      for (std::size_t t = turns_.first_task(turn); t < turns_.end_task(turn); ++t) run(TaskId(t));
    }
    return std::move(record_).finish();
  }

  // What left, in this order.
  [[nodiscard]] const std::vector<TensorId>& left() const { return left_; }

 private:
  // Of one that is away and has a trigger: the turn that it comes back before.
  struct Due {
    TensorId tensor;
    std::size_t turn = 0;
  };

  [[nodiscard]] StorageId storage(TensorId tensor) const { return step_.tensor(tensor).storage; }
  [[nodiscard]] bool is_away(const Operand& operand) const { return is_away(operand.tensor, operand.access); }
  [[nodiscard]] bool is_away(TensorId tensor, Access access = Access::read) const {
    return access == Access::read && !record_.holds(tensor, Tier::device) && record_.holds(tensor, Tier::host);
  }
  void fetch(TensorId tensor) {
    record_.open(storage(tensor), Tier::device);
    record_.copy(storage(tensor), Tier::host, Tier::device);
  }

  bool fetch_all(TaskId task) {
    bool any = false;
    for (const Operand& operand : step_.operands_of(task)) {
      if (!is_away(operand)) continue;
      fetch(operand.tensor);
      any = true;
    }
    return any;
  }

  // The nearest layer whose input is away, but none beyond the next convolution.
  void prefetch(std::size_t turn) {
    if (turns_.first_task(turn) < static_cast<std::size_t>(facts_.first_backward())) return;
    for (std::size_t next = turn + 1; next < turns_.count(); ++next) {
      bool any = false;
      for (std::size_t t = turns_.first_task(next); t < turns_.end_task(next); ++t) any = fetch_all(TaskId(t)) || any;
      if (any || is_convolution(step_.layer_kind(step_.tasks[turns_.first_task(next)]))) return;
    }
  }

  // The last that left is needed first.
  void fetch_triggered(std::size_t turn) {
    for (auto due = due_.rbegin(); due != due_.rend(); ++due)
      if (due->turn <= turn && is_away(due->tensor)) fetch(due->tensor);
  }

  void run(TaskId task) {
    fetch_all(task);
    record_.open_operands(task);
    record_.run(task);
    for (const Operand& operand : step_.operands_of(task)) settle(operand.tensor, task);
  }

  void settle(TensorId tensor, TaskId task) {
    if (step_.storage(storage(tensor)).persistent) return;
    const auto position = static_cast<std::int32_t>(task.index());
    const bool dead = facts_.last_use(tensor) <= position;
    if (dead && record_.holds(tensor, Tier::host)) record_.close(storage(tensor), Tier::host);
    if (!record_.holds(tensor, Tier::device)) return;
    if (dead) return record_.close(storage(tensor), Tier::device);
    if (record_.holds(tensor, Tier::host)) return;  // it is back already
    const std::int32_t next = facts_.next_use(tensor, position);
    if (!leaves_[tensor.index()] || position >= facts_.first_backward() || next < facts_.first_backward()) return;
    // Out and back takes a layer each.
    constexpr std::size_t kSoon = 2;
    const std::size_t needed = turns_.of(TaskId(static_cast<std::size_t>(next)));
    if (needed <= turns_.of(task) + kSoon) return;
    record_.open(storage(tensor), Tier::host);
    record_.copy(storage(tensor), Tier::device, Tier::host);
    record_.close(storage(tensor), Tier::device);
    if (triggers_.early) {
      const std::int32_t early = left_.size() < triggers_.early->size() ? (*triggers_.early)[left_.size()] : 0;
      // Triggers are of the backward pass; where there is none, it comes back at once.
      const std::size_t first = turns_.of(TaskId(static_cast<std::size_t>(facts_.first_backward())));
      const auto ahead = static_cast<std::size_t>(early);
      due_.push_back({tensor, early == kNoTrigger ? 0 : std::max(first, ahead < needed ? needed - ahead : 0)});
      if (early == kNoTrigger) fetch(tensor);
    }
    left_.push_back(tensor);
  }

  const StepFacts& facts_;
  const Step& step_;
  const Turns& turns_;
  TriggerOptions triggers_;
  Recorder record_;
  std::vector<bool> leaves_;  // by tensor
  std::vector<Due> due_;
  std::vector<TensorId> left_;
};

// Copies start with the layer they run beside, and the layer behind it waits for them. What leaves
// stands behind the layer's tasks, what comes in before them.
void keep_in_step(const Turns& turns, Phase& phase) {
  const auto count = static_cast<std::int32_t>(phase.ops.size());
  const auto op = [&](std::int32_t i) -> Op& { return phase.ops[static_cast<std::size_t>(i)]; };
  std::vector<std::int32_t> first(turns.count(), -1), last(turns.count(), -1);  // by turn: its runs
  for (std::int32_t i = 0; i < count; ++i) {
    if (op(i).lane != Lane::compute) continue;
    const std::size_t turn = turns.of(op(i).run().task);
    if (first[turn] < 0) first[turn] = i;
    last[turn] = i;
  }
  // Where copies to what is behind the host stand in between, they keep no step.
  const auto is_kept = [&](const Op& copy) {
    return copy.is_copy() && (copy.copy().from == Tier::device || copy.copy().to == Tier::device);
  };
  std::size_t turn = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    if (op(i).lane == Lane::compute) turn = turns.of(op(i).run().task);
    if (!is_kept(op(i))) continue;
    // Of what comes in: the turn that it stands before.
    std::size_t beside = turn;
    if (op(i).lane == Lane::in)
      while (beside + 1 < turns.count() && last[beside] < i) ++beside;
    // A turn may be all sums, which run beside the tasks.
    if (beside > 0 && last[beside - 1] >= 0 && last[beside - 1] < i) op(i).waits.push_back(last[beside - 1]);
    if (beside + 1 < turns.count() && first[beside + 1] > i) op(first[beside + 1]).waits.push_back(i);
  }
}

// What comes in waits for its trigger: the last run before it in the plan's order.
void wait_for_triggers(Phase& phase) {
  std::int32_t trigger = -1;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(phase.ops.size()); ++i) {
    Op& op = phase.ops[static_cast<std::size_t>(i)];
    if (op.lane == Lane::compute) trigger = i;
    if (trigger >= 0 && op.is_copy() && op.copy().from == Tier::host && op.copy().to == Tier::device &&
        std::ranges::find(op.waits, trigger) == op.waits.end())
      op.waits.push_back(trigger);
  }
}

std::vector<TensorId> swappable(const Step& step, const Turns& turns, VdnnLayers layers) {
  const StepFacts facts(step, {});
  Virtualizer all(facts, turns, layers == VdnnLayers::all);
  (void)all.perform();
  return all.left();
}

Draft draft_vdnn(const Step& step, const Turns& turns, VdnnLayers layers, const PlanningContext& context) {
  const StepFacts facts(step, {});
  const auto& stagger = context.policy.get<StaggerOptions>();
  Virtualizer virtualizer(facts, turns, layers == VdnnLayers::all, context.policy.get<TriggerOptions>());
  if (stagger.layers >= 0 || stagger.only) {
    const std::vector<TensorId> all = swappable(step, turns, layers);
    std::vector<TensorId> chosen;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (is_swapped(stagger, static_cast<std::int32_t>(k), static_cast<std::int32_t>(all.size())))
        chosen.push_back(all[k]);
    virtualizer.leave_only(chosen);
  }
  return virtualizer.perform();
}

// What leaves keeps its place until its copy is likely to be over, so that nobody waits for it.
Draft held_until_out(const Step& step, const CostModel& cost, Draft draft) {
  hold_for_copies(step, cost, draft);
  std::vector<std::int32_t> back(step.storages.size(), INT32_MAX);  // by storage: where it is next on the device again
  std::vector<DraftStay*> stays;
  for (DraftStay& stay : draft.stays)
    if (stay.tier == Tier::device) stays.push_back(&stay);
  std::ranges::stable_sort(stays, std::greater(), &DraftStay::first);
  for (DraftStay* const stay : stays) {
    std::int32_t& next = back[stay->storage.index()];
    stay->hold_first = stay->first;
    stay->hold_last = std::max(stay->last, std::min(stay->hold_last, next - 1));
    next = stay->first;
  }
  draft.held = true;
  return draft;
}

}  // namespace

std::int32_t vdnn_swappable(const Step& step, const PlanningContext& context, VdnnLayers layers) {
  const Step merged = context.in_place ? merge_in_place(step) : step;
  return static_cast<std::int32_t>(swappable(merged, Turns(merged), layers).size());
}

double vdnn_seconds_at_least(const Step& step, const CostModel& cost, const PlanningContext& context,
                             VdnnLayers layers) {
  const Step merged = context.in_place ? merge_in_place(step) : step;
  return seconds_at_least(merged, cost, draft_vdnn(merged, Turns(merged), layers, context),
                          context.memory[Tier::device]);
}

PlanResult plan_vdnn(Step step, const CostModel& cost, const PlanningContext& context, VdnnLayers layers,
                     Algorithms algorithms) {
  if (context.in_place) step = merge_in_place(std::move(step));
  const Turns turns(step);
  Draft draft = draft_vdnn(step, turns, layers, context);
  for (Op& op : draft.ops)
    if (op.is_run())
      op.run().algorithm = algorithms == Algorithms::fastest ? fastest_algorithm(step, cost, op.run().task)
                                                             : smallest_algorithm(step, op.run().task);
  draft.settled = true;
  const bool in_step = !context.policy.get<TriggerOptions>().early;
  PlanResult result;
  if (!in_step) result = finish_draft(step, held_until_out(step, cost, draft), cost, context);
  if (!result.plan) {
    PlanResult plain = finish_draft(step, std::move(draft), cost, context);
    // What lies there for longer may by chance be packed more tightly: then only the tiers behind the device are short.
    const bool nearer = !in_step && result.short_of != Tier::device && plain.short_of == Tier::device;
    if (plain.plan || !nearer) result = std::move(plain);
  }
  if (!result.plan) return result;
  if (in_step)
    keep_in_step(turns, result.plan->phases.front());
  else
    wait_for_triggers(result.plan->phases.front());
  result.seconds.reset();
  return result;
}

}  // namespace tide
