// Follows a plan on a backend: one phase, or the rounds of a batch that was cut and the update
// behind them, over one set of persistent storages. Which of the two a plan takes is decided once,
// by make_executor().
//
// Not thread safe: one step at a time.
#pragma once

#include "executor/phase_executor.h"

namespace tide {

class Executor {
 public:
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // One step over what was put into input(), labels() and the parameters. Throws an Error
  // that names the op which failed; the parameters may then be those of half a step, but the
  // executor can be used again.
  void run(const StepState& state);
  // The same in two halves. Where works_ahead(), start() returns while the device works: the next
  // batch may be filled in before finish() waits. Elsewhere all is done in start().
  virtual void start(const StepState& state) = 0;
  virtual void finish() = 0;
  [[nodiscard]] virtual bool works_ahead() const = 0;
  // Between start() and finish(): what was filled in for the next step goes to the device already,
  // where it has room for it. REQUIRES: works_ahead().
  virtual void send_ahead() = 0;

  // The batch, in NHWC order, and its labels: fill before each run().
  [[nodiscard]] virtual std::span<float> input() = 0;
  [[nodiscard]] virtual std::span<std::int32_t> labels() = 0;
  // Of the last run().
  using Metric = tide::Metric;
  [[nodiscard]] virtual Metric metric() const = 0;
  // Of the last run, with ExecutorOptions::record: all phases and repeats in turn.
  [[nodiscard]] virtual const Timeline& timeline() const = 0;

  [[nodiscard]] bool is_recorded() const { return first().is_recorded(); }
  // Values between steps, in logical order. REQUIRES: the tensor is of step() and its storage is
  // persistent.
  void write(TensorId tensor, std::span<const float> values) { phases_.front()->write(tensor, values); }
  void read(TensorId tensor, std::span<float> values) const { first().read(tensor, values); }
  // Bytes of a persistent storage between steps, from `offset` on, as they lie there.
  void write_bytes(StorageId storage, Bytes offset, std::span<const std::byte> bytes) {
    phases_.front()->write_bytes(storage, offset, bytes);
  }
  void read_bytes(StorageId storage, Bytes offset, std::span<std::byte> bytes) const {
    first().read_bytes(storage, offset, bytes);
  }
  // Of the first phase.
  [[nodiscard]] const Step& step() const { return first().step(); }
  // The highest address that any run so far handed out.
  [[nodiscard]] Bytes high_water() const;
  // Of the last run, between device and host.
  [[nodiscard]] Bytes copied_out() const { return total(&PhaseExecutor::copied_out); }
  [[nodiscard]] Bytes copied_in() const { return total(&PhaseExecutor::copied_in); }
  // Of the last run, between host and disk.
  [[nodiscard]] Bytes spilled() const { return total(&PhaseExecutor::spilled); }
  [[nodiscard]] Bytes fetched() const { return total(&PhaseExecutor::fetched); }
  // Of the last run, between host and what other ranks lend.
  [[nodiscard]] Bytes sent() const { return total(&PhaseExecutor::sent); }
  [[nodiscard]] Bytes received() const { return total(&PhaseExecutor::received); }
  // Of the last run, between this device and another's memory.
  [[nodiscard]] Bytes pushed() const { return total(&PhaseExecutor::pushed); }
  [[nodiscard]] Bytes pulled() const { return total(&PhaseExecutor::pulled); }

 protected:
  Executor(const Plan& plan, Backend& backend, const Tiers& tiers, const ExecutorOptions& options);
  [[nodiscard]] PhaseExecutor& phase(std::size_t index) { return *phases_[index]; }
  [[nodiscard]] const PhaseExecutor& first() const { return *phases_.front(); }

 private:
  [[nodiscard]] Bytes total(Bytes (PhaseExecutor::*moved)() const) const;

  std::unique_ptr<Arena> own_host_;  // of all phases, where none was given
  std::vector<std::unique_ptr<PhaseExecutor>> phases_;
  std::vector<std::int32_t> repeats_;  // by phase
};

// REQUIRES: the plan passes the checker, its steps have their networks and were annotated by
// `backend`. All of these outlive the executor. Throws an Error where a tier is too small.
[[nodiscard]] std::unique_ptr<Executor> make_executor(const Plan& plan, Backend& backend, const Tiers& tiers,
                                                      const ExecutorOptions& options = {});

// Device memory beyond the plan in which its executor can have the next inputs while the device
// works on others; none where it never sends any ahead. For ExecutorOptions::input_ahead.
[[nodiscard]] Bytes ahead_bytes(const Plan& plan);

}  // namespace tide
