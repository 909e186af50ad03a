// A step of one phase whose batch is one input: while a device works on it, the next batch can be
// filled in and sent ahead.
#pragma once

#include "executor/executor.h"

namespace tide {

class BatchExecutor final : public Executor {
 public:
  // REQUIRES: one phase, not repeated, with at most one input.
  BatchExecutor(const Plan& plan, Backend& backend, const Tiers& tiers, const ExecutorOptions& options)
      : Executor(plan, backend, tiers, options), input_(only(first().inputs())), labels_(only(first().labels())) {}

  void start(const StepState& state) override { phase(0).start(state); }
  void finish() override { phase(0).finish(); }
  [[nodiscard]] bool works_ahead() const override { return first().is_recorded(); }
  void send_ahead() override { phase(0).send_ahead(); }

  [[nodiscard]] std::span<float> input() override { return refill(input_); }
  [[nodiscard]] std::span<std::int32_t> labels() override { return refill(labels_); }
  [[nodiscard]] Metric metric() const override { return first().metric(); }
  [[nodiscard]] const Timeline& timeline() const override { return first().timeline(); }

 private:
  template <typename Value>
  static std::span<Value> only(const std::vector<std::span<Value>>& entries) {
    return entries.empty() ? std::span<Value>() : entries.front();
  }
  // Whoever asks for an input fills it anew.
  template <typename Value>
  std::span<Value> refill(std::span<Value> entry) {
    phase(0).forget_ahead();
    return entry;
  }

  std::span<float> input_;
  std::span<std::int32_t> labels_;
};

}  // namespace tide
