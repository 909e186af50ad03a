#include "executor/executor.h"

#include <algorithm>

#include "plan/summary.h"

namespace tide {

Executor::Executor(const Plan& plan, Backend& backend, const Tiers& tiers, const ExecutorOptions& options) {
  // What rests in host memory does so from phase to phase.
  const Bytes host = summarize(plan).host_peak_bytes;
  if (tiers.host == nullptr && plan.phases.size() > 1 && !host.is_zero())
    own_host_ = std::make_unique<Arena>(backend, host, Tier::host);
  const Tiers shared(tiers.device, own_host_ ? own_host_.get() : tiers.host, tiers.disk);
  for (const Phase& phase : plan.phases) {
    const std::int64_t samples = phase.step->options.part == Part::update ? 0 : phase.step->options.batch;
    for (std::int32_t round = 0; round < phase.repeat; ++round) {
      rounds_.push_back({phases_.size(), batch_, samples});
      batch_ += samples;
    }
    repeats_.push_back(phase.repeat);
    phases_.push_back(std::make_unique<PhaseExecutor>(phase, backend, shared, options));
    inputs_.push_back(phases_.back()->inputs());
    targets_.push_back(phases_.back()->labels());
  }
  if (rounds_.size() == 1 && inputs_.front().size() <= 1) {
    rounds_.clear();
    return;
  }
  std::size_t spans = 0;
  const auto count = [&](const auto& entries) {
    std::size_t values = 0;
    for (const Round& round : rounds_)
      for (const auto& entry : entries[round.phase]) values += entry.size();
    return values;
  };
  input_.resize(count(inputs_));
  if (options.record)
    for (const Phase& phase : plan.phases) spans += phase.ops.size() * static_cast<std::size_t>(phase.repeat);
  timeline_.spans.reserve(spans);
  labels_.resize(count(targets_));
}

void Executor::run(const StepState& state) {
  start(state);
  finish();
}

void Executor::start(const StepState& state) {
  if (rounds_.empty()) return phases_.front()->start(state);
  run_rounds(state);
}

void Executor::finish() {
  if (rounds_.empty()) phases_.front()->finish();
}

void Executor::send_ahead() {
  if (rounds_.empty()) phases_.front()->send_ahead();
}

void Executor::fill(const Round& round) {
  if (round.samples == 0) return;
  const auto take = [&](const auto& batch, const auto& entries) {
    const std::size_t each = batch.size() / static_cast<std::size_t>(batch_);
    auto from = batch.begin() + static_cast<std::ptrdiff_t>(each * static_cast<std::size_t>(round.first_sample));
    for (const auto& entry : entries) {
      std::copy_n(from, entry.size(), entry.begin());
      from += static_cast<std::ptrdiff_t>(entry.size());
    }
  };
  phases_[round.phase]->forget_ahead();
  take(input_, inputs_[round.phase]);
  take(labels_, targets_[round.phase]);
}

void Executor::run_rounds(const StepState& state) {
  metric_ = {};
  timeline_.spans.clear();
  timeline_.seconds = 0;
  fill(rounds_.front());
  for (std::size_t r = 0; r < rounds_.size(); ++r) {
    const Round& round = rounds_[r];
    PhaseExecutor& phase = *phases_[round.phase];
    StepState part = state;
    part.first_sample += round.first_sample;
    phase.start(part);
    // The device's memory is not the host's where it works by itself, so that the next round's
    // samples are in nobody's way.
    const bool has_next = r + 1 < rounds_.size();
    if (has_next && phase.is_recorded()) {
      fill(rounds_[r + 1]);
      if (rounds_[r + 1].phase == round.phase) phase.send_ahead();
    }
    phase.finish();
    if (has_next && !phase.is_recorded()) fill(rounds_[r + 1]);
    if (round.samples > 0) {
      const Metric metric = phase.metric();
      metric_.loss += metric.loss * static_cast<double>(round.samples) / static_cast<double>(batch_);
      metric_.correct += metric.correct;
      metric_.answers += metric.answers;
    }
    const Timeline& timeline = phase.timeline();
    for (const Span& span : timeline.spans)
      timeline_.spans.push_back({span.op, timeline_.seconds + span.start, timeline_.seconds + span.end});
    timeline_.seconds += timeline.seconds;
  }
}

std::span<float> Executor::input() {
  if (!rounds_.empty()) return input_;
  phases_.front()->forget_ahead();
  return inputs_.front().empty() ? std::span<float>() : inputs_.front().front();
}

std::span<std::int32_t> Executor::labels() {
  if (!rounds_.empty()) return labels_;
  phases_.front()->forget_ahead();
  return targets_.front().empty() ? std::span<std::int32_t>() : targets_.front().front();
}

Metric Executor::metric() const { return rounds_.empty() ? phases_.front()->metric() : metric_; }

Bytes Executor::high_water() const {
  Bytes highest;
  for (const auto& phase : phases_) highest = std::max(highest, phase->high_water());
  return highest;
}

Bytes Executor::total(Bytes (PhaseExecutor::*moved)() const) const {
  Bytes sum;
  for (std::size_t p = 0; p < phases_.size(); ++p) sum += (*phases_[p].*moved)() * repeats_[p];
  return sum;
}

}  // namespace tide
