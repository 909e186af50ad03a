#include "executor/rounds_executor.h"

#include <algorithm>

namespace tide {

RoundsExecutor::RoundsExecutor(const Plan& plan, Backend& backend, const Tiers& tiers, const ExecutorOptions& options)
    : Executor(plan, backend, tiers, options) {
  std::size_t inputs = 0, labels = 0, spans = 0;
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    const Step& step = *plan.phases[p].step;
    const std::int64_t samples = step.options.part == Part::update ? 0 : step.options.batch;
    inputs_.push_back(phase(p).inputs());
    targets_.push_back(phase(p).labels());
    for (std::int32_t round = 0; round < plan.phases[p].repeat; ++round) {
      rounds_.push_back({p, batch_, samples});
      batch_ += samples;
      for (const auto& entry : inputs_[p]) inputs += entry.size();
      for (const auto& entry : targets_[p]) labels += entry.size();
      spans += plan.phases[p].ops.size();
    }
  }
  input_.resize(inputs);
  labels_.resize(labels);
  if (options.record) timeline_.spans.reserve(spans);
}

void RoundsExecutor::start(const StepState& state) {
  metric_ = {};
  timeline_.spans.clear();
  timeline_.seconds = 0;
  fill(rounds_.front());
  for (std::size_t r = 0; r < rounds_.size(); ++r) {
    run_round(rounds_[r], r + 1 < rounds_.size() ? &rounds_[r + 1] : nullptr, state);
    add_result(rounds_[r]);
  }
}

void RoundsExecutor::fill(const Round& round) {
  if (round.samples == 0) return;
  const auto take = [&](const auto& batch, const auto& entries) {
    const std::size_t each = batch.size() / static_cast<std::size_t>(batch_);
    auto from = batch.begin() + static_cast<std::ptrdiff_t>(each * static_cast<std::size_t>(round.first_sample));
    for (const auto& entry : entries) {
      std::copy_n(from, entry.size(), entry.begin());
      from += static_cast<std::ptrdiff_t>(entry.size());
    }
  };
  phase(round.phase).forget_ahead();
  take(input_, inputs_[round.phase]);
  take(labels_, targets_[round.phase]);
}

void RoundsExecutor::run_round(const Round& round, const Round* next, const StepState& state) {
  PhaseExecutor& current = phase(round.phase);
  StepState part = state;
  part.first_sample += round.first_sample;
  current.start(part);
  // The device's memory is not the host's where it works by itself, so that the next round's
  // samples are in nobody's way.
  const bool meanwhile = current.is_recorded();
  if (next != nullptr && meanwhile) {
    fill(*next);
    if (next->phase == round.phase) current.send_ahead();
  }
  current.finish();
  if (next != nullptr && !meanwhile) fill(*next);
}

void RoundsExecutor::add_result(const Round& round) {
  const PhaseExecutor& done = phase(round.phase);
  if (round.samples > 0) {
    const Metric metric = done.metric();
    metric_.loss += metric.loss * static_cast<double>(round.samples) / static_cast<double>(batch_);
    metric_.loss_sum += metric.loss_sum;
    metric_.correct += metric.correct;
  }
  const Timeline& timeline = done.timeline();
  for (const Span& span : timeline.spans)
    timeline_.spans.push_back({span.op, timeline_.seconds + span.start, timeline_.seconds + span.end});
  timeline_.seconds += timeline.seconds;
}

}  // namespace tide
