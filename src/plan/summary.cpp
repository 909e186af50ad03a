#include "plan/summary.h"

#include <algorithm>

#include "plan/alive.h"

namespace tide {
namespace {

// Bytes and storages alive at each op of a phase, in device memory.
struct Usage {
  std::vector<std::int64_t> live, data, tensors;
};

Bytes workspace_of(const Phase& phase, const Op& op) {
  return op.is_run() ? workspace_bytes(*phase.step, op.run()) : Bytes();
}

Usage usage_of(const Phase& phase) {
  const std::size_t ops = phase.ops.size();
  AliveSum live(ops), data(ops), tensors(ops);
  for (const Residency& r : phase.residencies) {
    if (r.tier != Tier::device) continue;
    const Storage& storage = phase.step->storage(r.storage);
    live.add(r.first, r.last, storage.bytes.count());
    if (!is_data(storage.tensor_class)) continue;
    data.add(r.first, r.last, storage.bytes.count());
    tensors.add(r.first, r.last, 1);
  }
  Usage usage{std::move(live).take(), std::move(data).take(), std::move(tensors).take()};
  for (std::size_t i = 0; i < ops; ++i) usage.live[i] += workspace_of(phase, phase.ops[i]).count();
  return usage;
}

// The layer step that each op belongs to: its own, or for updates that of the op before,
// for replays and copies that of the task they are made for.
std::vector<std::int32_t> steps_of(const Phase& phase) {
  std::vector<std::int32_t> steps(phase.ops.size(), 0);
  std::int32_t caused = 0;
  for (std::size_t i = phase.ops.size(); i-- > 0;) {
    const Op& op = phase.ops[i];
    const bool own = op.is_run() && phase.step->task(op.run().task).kind != TaskKind::replay;
    if (own) caused = phase.step->task(op.run().task).step;
    steps[i] = caused;
  }
  std::int32_t before = 1;
  for (std::int32_t& step : steps) before = step = step > 0 ? step : before;
  return steps;
}

void add_steps(const Phase& phase, const Usage& usage, PlanSummary& summary) {
  const std::vector<std::int32_t> steps = steps_of(phase);
  std::vector<StepUsage> list(static_cast<std::size_t>(phase.step->layer_steps) * 2 + 1);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    StepUsage& step = list[static_cast<std::size_t>(steps[i])];
    const bool names = phase.ops[i].is_run() && phase.step->task(phase.ops[i].run().task).step == steps[i] &&
                       phase.step->task(phase.ops[i].run().task).kind != TaskKind::replay;
    if (step.step == 0 || (names && step.task.empty()))
      step.task = names ? task_name(*phase.step, phase.ops[i].run().task) : "";
    step.step = steps[i];
    step.live_bytes = std::max(step.live_bytes, Bytes(usage.live[i]));
    // As the papers count, copies take no time: data is counted while a task runs.
    if (phase.ops[i].is_run() && Bytes(usage.data[i]) >= step.live_data_bytes) {
      step.live_data_bytes = Bytes(usage.data[i]);
      step.live_data_tensors = std::max(step.live_data_tensors, static_cast<std::int32_t>(usage.tensors[i]));
    }
  }
  const bool first = summary.steps.empty();
  for (StepUsage& step : list) {
    if (step.step == 0) continue;
    if (step.live_data_bytes > summary.peak_data_bytes) {
      summary.peak_data_bytes = step.live_data_bytes;
      summary.peak_step = step.step;
      summary.peak_task = step.task;
      summary.live_data_tensors_at_peak = step.live_data_tensors;
    }
    summary.max_live_data_tensors = std::max(summary.max_live_data_tensors, step.live_data_tensors);
    // Later rounds are like the first, and the update is of no layer.
    if (first) summary.steps.push_back(std::move(step));
  }
}

// Of a batch that is cut: those of the round that has most.
void add_data(const Phase& phase, PlanSummary& summary) {
  std::int32_t tensors = 0;
  Bytes bytes;
  for (const Storage& storage : phase.step->storages) {
    if (!is_data(storage.tensor_class)) continue;
    ++tensors;
    bytes += storage.bytes;
  }
  summary.data_tensors = std::max(summary.data_tensors, tensors);
  summary.data_bytes = std::max(summary.data_bytes, bytes);
}

void add_classes(const Phase& phase, std::size_t peak, PlanSummary& summary) {
  summary.classes = {};
  for (const Residency& r : phase.residencies) {
    if (r.tier != Tier::device || r.first > static_cast<std::int32_t>(peak) || r.last < static_cast<std::int32_t>(peak))
      continue;
    const Storage& storage = phase.step->storage(r.storage);
    summary.classes[static_cast<std::size_t>(storage.tensor_class)] += storage.bytes;
  }
  summary.workspace_at_peak = phase.ops.empty() ? Bytes() : workspace_of(phase, phase.ops[peak]);
}

}  // namespace

PlanSummary summarize(const Plan& plan) {
  PlanSummary summary;
  for (const Phase& phase : plan.phases) {
    for (const Residency& r : phase.residencies) {
      summary.peak[r.tier] = std::max(summary.peak[r.tier], r.address + aligned_bytes(phase, r));
      if (r.tier == Tier::host && r.first == kEntry && summary.rounds == 0)
        summary.resting_bytes += aligned_bytes(phase, r);
    }
    for (const Op& op : phase.ops) {
      if (op.is_run()) {
        Bytes& peak = summary.peak[Tier::device];
        peak = std::max(peak, op.run().workspace + workspace_bytes(*phase.step, op.run()).aligned());
        if (phase.step->task(op.run().task).kind == TaskKind::replay) summary.recomputed_tasks += phase.repeat;
        continue;
      }
      const Bytes moved = phase.step->storage(op.copy().storage).bytes * phase.repeat;
      if (op.copy().from == Tier::device) summary.offloaded_bytes += moved;
      if (op.copy().to == Tier::device) summary.prefetched_bytes += moved;
    }
    if (phase.step->options.part != Part::update) summary.rounds += phase.repeat;
    summary.tasks += static_cast<std::int64_t>(
                         std::count_if(phase.ops.begin(), phase.ops.end(), [](const Op& op) { return op.is_run(); })) *
                     phase.repeat;
    add_data(phase, summary);
    const Usage usage = usage_of(phase);
    add_steps(phase, usage, summary);
    if (usage.live.empty()) continue;
    const auto peak = std::max_element(usage.live.begin(), usage.live.end());
    if (Bytes(*peak) > summary.peak_live_bytes) {
      summary.peak_live_bytes = Bytes(*peak);
      const auto at = static_cast<std::size_t>(peak - usage.live.begin());
      summary.peak_live_task =
          at < phase.ops.size() && phase.ops[at].is_run() ? task_name(*phase.step, phase.ops[at].run().task) : "";
      add_classes(phase, std::min(at, phase.ops.size() - 1), summary);
    }
  }
  return summary;
}

}  // namespace tide
