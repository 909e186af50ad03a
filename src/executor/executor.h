// Follows a plan on a backend: one phase, or the rounds of a batch that was cut and the update
// behind them, over one set of persistent storages.
//
// Not thread safe: one step at a time.
#pragma once

#include "executor/phase_executor.h"

namespace tide {

class Executor {
 public:
  // REQUIRES: the plan passes the checker, its steps have their networks and were annotated by
  // `backend`. All of these outlive the executor. Throws an Error where a tier is too small.
  Executor(const Plan& plan, Backend& backend, const Tiers& tiers, const ExecutorOptions& options = {});

  // One step over what was put into input(), labels() and the parameters. Throws an Error
  // that names the op which failed; the parameters may then be those of half a step, but the
  // executor can be used again.
  void run(const StepState& state);
  // The same in two halves. Where the step was recorded and is of one phase, start() returns while
  // the device works: the next batch may be filled in before finish() waits. Elsewhere all is done
  // in start().
  void start(const StepState& state);
  void finish();
  // Whether start() leaves the device working.
  [[nodiscard]] bool works_ahead() const { return rounds_.empty() && phases_.front()->is_recorded(); }
  [[nodiscard]] bool is_recorded() const { return phases_.front()->is_recorded(); }
  // Between start() and finish(): what was filled in for the next step goes to the device already,
  // where it has room for it.
  void send_ahead();

  // The batch, channels last, and its labels: fill before each run().
  [[nodiscard]] std::span<float> input();
  [[nodiscard]] std::span<std::int32_t> labels();
  // Of the last run().
  using Metric = tide::Metric;
  [[nodiscard]] Metric metric() const;

  // Values between steps, in logical order. REQUIRES: the tensor is of step() and its storage is
  // persistent.
  void write(TensorId tensor, std::span<const float> values) { phases_.front()->write(tensor, values); }
  void read(TensorId tensor, std::span<float> values) const { phases_.front()->read(tensor, values); }

  // Of the first phase.
  [[nodiscard]] const Step& step() const { return phases_.front()->step(); }
  // The highest address that any run so far handed out.
  [[nodiscard]] Bytes high_water() const;
  // Of the last run, between device and host.
  [[nodiscard]] Bytes copied_out() const { return total(&PhaseExecutor::copied_out); }
  [[nodiscard]] Bytes copied_in() const { return total(&PhaseExecutor::copied_in); }
  // Of the last run, between host and disk.
  [[nodiscard]] Bytes spilled() const { return total(&PhaseExecutor::spilled); }
  [[nodiscard]] Bytes fetched() const { return total(&PhaseExecutor::fetched); }
  // Of the last run, with ExecutorOptions::record: all phases and repeats in turn.
  [[nodiscard]] const Timeline& timeline() const { return rounds_.empty() ? phases_.front()->timeline() : timeline_; }

 private:
  struct Round {
    std::size_t phase = 0;
    std::int64_t first_sample = 0, samples = 0;  // none: the update
  };
  void fill(const Round& round);
  void run_rounds(const StepState& state);
  [[nodiscard]] Bytes total(Bytes (PhaseExecutor::*moved)() const) const;

  std::unique_ptr<Arena> own_host_;  // of all phases, where none was given
  std::vector<std::unique_ptr<PhaseExecutor>> phases_;
  // A batch that was cut: its rounds in order, and what they take their samples from.
  std::vector<Round> rounds_;
  std::vector<std::int32_t> repeats_;                          // by phase
  std::vector<std::vector<std::span<float>>> inputs_;          // by phase
  std::vector<std::vector<std::span<std::int32_t>>> targets_;  // by phase: for labels
  std::int64_t batch_ = 0;
  std::vector<float> input_;
  std::vector<std::int32_t> labels_;
  Metric metric_;
  Timeline timeline_;
};

}  // namespace tide
