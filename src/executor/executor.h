// Follows a plan on a backend. Everything is resolved at construction (kernels, addresses,
// the order of copies); a step then runs through a flat table: it decides nothing, looks
// nothing up and allocates nothing.
//
// Not thread safe: one step at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/arena.h"
#include "executor/guard.h"
#include "plan/plan.h"
#include "plan/timeline.h"

namespace tide {

struct ExecutorOptions {
  // Canaries behind every stay and poison in every freed or fresh one, so that a wrong
  // plan or a kernel that writes too far is caught in the step where it happens.
#ifdef NDEBUG
  bool guard = false;
#else
  bool guard = true;
#endif
  bool record = false;  // fill timeline()
};

class Executor {
 public:
  // REQUIRES: the plan passes the checker, its steps have their networks and were annotated by
  // `backend`, and the arena holds its peak. All three outlive the executor.
  Executor(const Plan& plan, Backend& backend, Arena& arena, const ExecutorOptions& options = {});

  // One step over what was put into input(), labels() and the parameters.
  void run(const StepState& state);

  // The batch, in NHWC order, and its labels: fill before each run().
  [[nodiscard]] std::span<float> input();
  [[nodiscard]] std::span<std::int32_t> labels();
  // Over all loss layers: the sum of their losses and the correct answers of the last run().
  struct Metric {
    double loss = 0;     // mean over the batch's positions, weighted over loss layers
    double correct = 0;  // answers
    double answers = 0;  // labels in the batch
  };
  [[nodiscard]] Metric metric() const;

  // Values between steps, in logical order. REQUIRES: the tensor's storage is persistent.
  void write(TensorId tensor, std::span<const float> values);
  void read(TensorId tensor, std::span<float> values) const;

  [[nodiscard]] const Step& step() const { return *phase_->step; }
  // The highest address that any run so far handed out.
  [[nodiscard]] Bytes high_water() const { return high_water_; }
  [[nodiscard]] Bytes copied_out() const { return copied_out_; }
  [[nodiscard]] Bytes copied_in() const { return copied_in_; }
  // Of the last run, with ExecutorOptions::record.
  [[nodiscard]] const Timeline& timeline() const { return timeline_; }

 private:
  struct Prepared {
    Kernel kernel;                         // run
    std::uint32_t first_address = 0;       // of its operands in addresses_
    std::byte* workspace = nullptr;
    const std::byte* copy_from = nullptr;  // copy
    std::byte* copy_to = nullptr;
    Bytes copy_bytes;
    Tier to = Tier::device;
    Bytes top;  // highest address in use from this op on
  };

  void prepare();
  [[nodiscard]] std::byte* locate(const Residency& residency) const;
  [[nodiscard]] std::byte* entry_address(StorageId storage) const;
  void run_op(const Prepared& op, const StepState& state);

  Backend& backend_;
  Arena& arena_;
  const Phase* phase_;
  std::unique_ptr<std::byte[]> host_;  // the host tier, of exactly the size the plan needs
  std::vector<Prepared> ops_;
  std::vector<std::byte*> addresses_;
  std::vector<std::byte*> entry_;  // by storage: its address between steps, or null
  std::unique_ptr<Guard> guard_;
  bool record_;
  Bytes entry_top_;
  Bytes high_water_, copied_out_, copied_in_;
  Timeline timeline_;
};

}  // namespace tide
