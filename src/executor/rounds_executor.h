// A step that is fed in parts: the rounds of a batch that was cut and the update behind them, or
// one phase with an input for each sub-batch. The batch is kept here and handed out round by round.
#pragma once

#include "executor/executor.h"

namespace tide {

class RoundsExecutor final : public Executor {
 public:
  RoundsExecutor(const Plan& plan, Backend& backend, const Tiers& tiers, const ExecutorOptions& options);

  // All of it: the host is needed between rounds.
  void start(const StepState& state) override;
  void finish() override {}
  [[nodiscard]] bool works_ahead() const override { return false; }
  void send_ahead() override {}

  [[nodiscard]] std::span<float> input() override { return input_; }
  [[nodiscard]] std::span<std::int32_t> labels() override { return labels_; }
  [[nodiscard]] Metric metric() const override { return metric_; }
  [[nodiscard]] const Timeline& timeline() const override { return timeline_; }

 private:
  struct Round {
    std::size_t phase = 0;
    std::int64_t first_sample = 0, samples = 0;  // none: the update
  };
  void fill(const Round& round);
  // Runs a round, and meanwhile or afterwards fills in the next one, if any.
  void run_round(const Round& round, const Round* next, const StepState& state);
  void add_result(const Round& round);

  std::vector<Round> rounds_;
  std::vector<std::vector<std::span<float>>> inputs_;          // by phase
  std::vector<std::vector<std::span<std::int32_t>>> targets_;  // by phase: for labels
  std::int64_t batch_ = 0;
  std::vector<float> input_;
  std::vector<std::int32_t> labels_;
  Metric metric_;
  Timeline timeline_;
};

}  // namespace tide
