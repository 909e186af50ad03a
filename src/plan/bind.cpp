#include "plan/bind.h"

#include <algorithm>

#include "plan/checker.h"

namespace tide {
namespace {

[[noreturn]] void differ(std::string_view what) {
  throw Error("the plan does not belong to this run: {} differ; make it again with tide plan --save", what);
}

bool same(const Tensor& a, const Tensor& b) {
  return a.tensor_class == b.tensor_class && a.type == b.type && a.shape == b.shape && a.order == b.order &&
         a.layer == b.layer && a.parameter == b.parameter && a.role == b.role && a.index == b.index;
}

bool same(const Operand& a, const Operand& b) {
  return a.role == b.role && a.access == b.access && a.index == b.index && a.tensor == b.tensor && a.view == b.view;
}

bool same(const Task& a, const Task& b) {
  return a.kind == b.kind && a.layer == b.layer && a.step == b.step && a.first_sample == b.first_sample &&
         a.first_operand == b.first_operand && a.operand_count == b.operand_count &&
         a.first_in_place == b.first_in_place && a.in_place_count == b.in_place_count;
}

bool same(const std::vector<Algorithm>& a, const std::vector<Algorithm>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].workspace != b[i].workspace) return false;
  return true;
}

// The saved phase on the step made here.
void bind(Phase& phase, Step fresh) {
  const Step& saved = *phase.step;
  if (saved.tensors.size() != fresh.tensors.size() || saved.tasks.size() != fresh.tasks.size() ||
      saved.operands.size() != fresh.operands.size() || saved.views.size() != fresh.views.size() ||
      saved.ordered_tasks != fresh.ordered_tasks)
    differ("the tables");
  for (std::size_t t = 0; t < fresh.tensors.size(); ++t) {
    // The storages are the plan's decision, but not their sizes.
    const bool size = saved.storage(saved.tensors[t].storage).bytes == fresh.storage(fresh.tensors[t].storage).bytes;
    if (!same(saved.tensors[t], fresh.tensors[t]) || !size) differ("the tensors");
  }
  if (saved.views != fresh.views) differ("the views");
  if (saved.in_place != fresh.in_place) differ("the results that may take the place of operands");
  for (std::size_t o = 0; o < fresh.operands.size(); ++o)
    if (!same(saved.operands[o], fresh.operands[o])) differ("the operands");
  for (std::size_t t = 0; t < fresh.tasks.size(); ++t)
    if (!same(saved.tasks[t], fresh.tasks[t]) || !same(saved.algorithms_of(TaskId(t)), fresh.algorithms_of(TaskId(t))))
      differ("the tasks");
  // What a step begins with, and what it leaves behind, is not the plan's to decide.
  const auto endures = [](const Storage& storage) { return storage.persistent || storage.entry.valid(); };
  const auto count = [&](const Step& step) { return std::ranges::count_if(step.storages, endures); };
  if (count(saved) != count(fresh)) differ("the persistent storages");
  for (const Storage& storage : fresh.storages) {
    if (!endures(storage)) continue;
    const TensorId value = storage.entry.valid() ? storage.entry : storage.exit;
    const Storage& planned = saved.storage(saved.tensor(value).storage);
    if (planned.persistent != storage.persistent || planned.entry != storage.entry || planned.exit != storage.exit)
      differ("the persistent storages");
  }

  for (std::size_t t = 0; t < fresh.tensors.size(); ++t) fresh.tensors[t].storage = saved.tensors[t].storage;
  fresh.storages = saved.storages;
  phase.step = std::make_shared<const Step>(std::move(fresh));
}

}  // namespace

Plan bind_plan(Plan plan, const Step& whole, const std::function<Step(std::int64_t samples, Part part)>& cut) {
  const std::string wanted = fingerprint_of(whole);
  if (plan.fingerprint != wanted)
    throw Error("the plan was made for [{}], this run is [{}]; make it again with tide plan --save", plan.fingerprint,
                wanted);
  require_valid(plan);
  if (plan.phases.size() > 1 && plan.phases.back().step->options.batch != whole.options.batch) differ("the batches");
  for (Phase& phase : plan.phases) {
    const StepOptions saved = phase.step->options;
    const bool is_whole = saved.part == Part::whole && saved.sub_batch == 0;
    bind(phase, is_whole ? whole : cut(saved.part == Part::whole ? saved.sub_batch : saved.batch, saved.part));
  }
  require_valid(plan);
  return plan;
}

}  // namespace tide
