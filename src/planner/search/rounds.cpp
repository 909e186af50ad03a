#include "planner/search/rounds.h"

#include <algorithm>

#include "network/kind.h"
#include "planner/draft/resting_storages.h"
#include "planner/policies/liveness.h"

namespace tide {
namespace {

// A round's plan for another part that has the same tasks; nothing where it needs other workspaces.
std::optional<Phase> same_as(const Phase& planned, Step step) {
  const Step& model = *planned.step;
  if (model.tasks.size() != step.tasks.size() || model.tensors.size() != step.tensors.size()) return std::nullopt;
  for (std::size_t t = 0; t < step.tasks.size(); ++t) {
    const auto& have = model.algorithms_of(TaskId(t));
    const auto& needed = step.algorithms_of(TaskId(t));
    if (have.size() != needed.size()) return std::nullopt;
    for (std::size_t a = 0; a < have.size(); ++a)
      if (needed[a].workspace > have[a].workspace) return std::nullopt;
  }
  // The storages are the planner's decision; which of them begin with a value is the step's.
  std::vector<Storage> storages = model.storages;
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const Storage& own = step.storage(step.tensors[t].storage);
    Storage& shared = storages[model.tensors[t].storage.index()];
    if (own.persistent) shared.entry = own.entry;
    if (own.bytes != shared.bytes) return std::nullopt;
  }
  for (std::size_t t = 0; t < step.tensors.size(); ++t) step.tensors[t].storage = model.tensors[t].storage;
  step.storages = std::move(storages);
  Phase phase = planned;
  phase.repeat = 1;
  phase.step = std::make_shared<const Step>(std::move(step));
  return phase;
}

// Puts phases together, and keeps the answer of the most demanding one.
class Rounds {
 public:
  Rounds(PolicyFunction plan, const CostModel& cost, const PlanningContext& context)
      : plan_(plan), cost_(cost), context_(context) {
    context_.cut = {};
    result_.plan.emplace();
  }

  void add(Step step, std::int32_t repeat) {
    PlanResult part = plan_(std::move(step), cost_, context_);
    if (part.floor[Tier::device] > result_.floor[Tier::device] || result_.bottleneck_task.empty()) {
      result_.floor[Tier::device] = part.floor[Tier::device];
      result_.bottleneck_task = std::move(part.bottleneck_task);
    }
    for (const TierRow& row : kTierTable)
      if (row.tier != Tier::device) result_.floor[row.tier] = std::max(result_.floor[row.tier], part.floor[row.tier]);
    if (!part.plan) {
      // The device comes first: with less of it than they need, parts do not ask how much of the host's they do.
      result_.short_of = result_.plan ? part.short_of : std::min(result_.short_of, part.short_of);
      result_.plan.reset();
    }
    if (!result_.plan) return;
    part.plan->phases.front().repeat = repeat;
    result_.plan->phases.push_back(std::move(part.plan->phases.front()));
  }

  // As the last one added, or planned where that does not do.
  void add_before(Step step) {
    if (!result_.plan) return add(std::move(step), 1);  // what it needs counts all the same
    std::optional<Phase> phase = same_as(result_.plan->phases.back(), step);
    if (!phase) {
      add(std::move(step), 1);
      if (!result_.plan) return;
      phase = std::move(result_.plan->phases.back());
      result_.plan->phases.pop_back();
    }
    result_.plan->phases.insert(result_.plan->phases.begin(), *std::move(phase));
  }

  // Nothing of the batch is left by then: all fits, unless parameters have to be fetched.
  void add_update(Step step) {
    if (!any_rests(resting_storages(step, context_))) plan_ = plan_liveness;
    add(std::move(step), 1);
  }

  [[nodiscard]] PlanResult take() && { return std::move(result_); }

 private:
  PolicyFunction plan_;
  const CostModel& cost_;
  PlanningContext context_;
  PlanResult result_;
};

bool normalizes(const Step& step) { return mixes_samples(step.layer_kinds); }

}  // namespace

PlanResult plan_rounds(PolicyFunction plan, const Step& step, std::int64_t sub_batch, const CostModel& cost,
                       const PlanningContext& context) {
  const std::int64_t batch = step.options.batch;
  if (sub_batch == batch) {
    PlanningContext uncut = context;
    uncut.cut = {};
    return plan(step, cost, uncut);
  }
  if (cuts_within(step, context)) {
    // One step that goes through its segments sub-batch by sub-batch.
    PlanningContext uncut = context;
    uncut.cut = {};
    return plan(context.cut(sub_batch, Part::whole), cost, uncut);
  }
  const std::int64_t full = batch / sub_batch, rest = batch % sub_batch;
  Rounds rounds(plan, cost, context);
  if (full > 1) {
    rounds.add(context.cut(sub_batch, Part::later_round), static_cast<std::int32_t>(full - 1));
    rounds.add_before(context.cut(sub_batch, Part::first_round));
  } else {
    rounds.add(context.cut(sub_batch, Part::first_round), 1);
  }
  if (rest > 0) rounds.add(context.cut(rest, Part::later_round), 1);
  rounds.add_update(context.cut(batch, Part::update));
  return std::move(rounds).take();
}

std::int64_t sub_batch_asked(const Step& step, const PlanningContext& context) {
  const std::int64_t samples = samples_asked(context.batch);
  // A forward-only step has no gradients to add up.
  if (samples <= 0 || samples >= step.options.batch || !step.options.training) return 0;
  if (!context.cut) throw Error("this step cannot be cut into sub-batches");
  const Numerics numerics = numerics_of_rounds(step, context);
  if (numerics > allowed_by(context.batch)) {
    const bool statistics = numerics == Numerics::changed;
    throw Error("sub-batches {} of {}; allow it with --allow {}{}",
                statistics ? "change the statistics of the batch norms" : "change the order of the sums", step.model,
                numerics_name(numerics), statistics ? ", or keep the statistics with --batch-norm exact" : "");
  }
  return samples;
}

Numerics numerics_of_rounds(const Step& step, const PlanningContext& context) {
  // Statistics of a batch are not those of its parts.
  return normalizes(step) && !has_exact_batch_norm(context.batch) ? Numerics::changed : Numerics::reordered;
}

PlanningContext for_part(PlanningContext context) {
  context.floor_at_most = context.cut_floor_at_most = Bytes();
  context.seconds_to_beat = std::numeric_limits<double>::infinity();
  context.excess = nullptr;
  context.remembered = nullptr;
  context.rungs.reset();
  context.others_apart = false;
  return context;
}

bool cuts_within(const Step& step, const PlanningContext& context) {
  return has_exact_batch_norm(context.batch) && normalizes(step);
}

bool may_cut(const Step& step, const PlanningContext& context) {
  return context.cut && step.options.training && step.options.part == Part::whole && step.options.batch > 1 &&
         numerics_of_rounds(step, context) <= allowed_by(context.batch);
}

}  // namespace tide
