// A plan: everything that was decided about one training step, as plain data. Planners
// make it, the checker proves it, the simulator times it, the executor follows it.
//
//   ops       1    2    3    4    5    6        one total order over all lanes
//   compute  [A]  [B]  [C]            [C']
//   out            [copy a to host]             waits for A
//   in                       [copy a back]      waits for the copy out; C' waits for it
//   a         |---------|    |---------|        two residencies of one storage
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/route.h"
#include "step/step.h"

namespace tide {

// A task with one of its algorithms; its workspace, if it has one, at `workspace`.
struct Run {
  TaskId task;
  std::uint32_t algorithm = 0;
  Bytes workspace = {};
};

// The bytes of a storage from its residency in one tier to that in another.
struct Copy {
  StorageId storage;
  Tier from = Tier::device, to = Tier::host;
};

// One thing to do. Lanes run side by side; within a lane, ops run in the plan's order. All lanes meet at the end of a
// phase.
struct Op {
  std::variant<Run, Copy> what = {};
  Lane lane = Lane::compute;
  // Earlier ops of other lanes that must have completed before this one starts.
  std::vector<std::int32_t> waits = {};

  [[nodiscard]] bool is_run() const { return std::holds_alternative<Run>(what); }
  [[nodiscard]] bool is_copy() const { return std::holds_alternative<Copy>(what); }
  // REQUIRES: it is one.
  [[nodiscard]] Run& run() { return std::get<Run>(what); }
  [[nodiscard]] const Run& run() const { return std::get<Run>(what); }
  [[nodiscard]] Copy& copy() { return std::get<Copy>(what); }
  [[nodiscard]] const Copy& copy() const { return std::get<Copy>(what); }
};
// On the lane of its task.
[[nodiscard]] inline Op run_op(const Step& step, const Run& run) {
  return {.what = run, .lane = lane_of(step.task(run.task).kind)};
}
// On the lane of its route. Throws an Error where the tiers are not linked.
[[nodiscard]] Op copy_op(const Copy& copy);

inline constexpr std::int32_t kEntry = -1;  // there before the first op

// One stay of one storage in one tier, from the op that makes it to the last op that uses
// it, both included. A stay up to `ops.size()` outlives the phase.
struct Residency {
  StorageId storage;
  Tier tier = Tier::device;
  std::int32_t first = 0, last = 0;
  Bytes address;
};

// A step at one (sub-)batch size. Tensor::storage of this step is what the planner decided:
// in-place results are merged already.
struct Phase {
  StepPtr step;
  std::vector<Op> ops;
  std::vector<Residency> residencies;
  std::int32_t repeat = 1;
};

// What the plan does to the numbers, compared with an unmanaged step.
enum class Numerics : std::uint8_t {
  identical,  // not a bit
  reordered,  // sums in another order (sub-batches)
  changed,    // batch norm over sub-batches
};
[[nodiscard]] std::string_view numerics_name(Numerics numerics);
[[nodiscard]] Numerics numerics_from_name(std::string_view name);

struct Plan {
  std::string policy;
  Numerics numerics = Numerics::identical;
  PerTier<std::optional<Bytes>> memory;  // the budgets it was made for; none: unlimited
  std::string fingerprint;               // of network, rules, batch, optimizer and backend
  std::vector<Phase> phases;
};

// Identifies what a plan was made for; a plan runs only where this is the same.
[[nodiscard]] std::string fingerprint_of(const Step& step);

// What it does to the numbers, as its phases show.
[[nodiscard]] Numerics numerics_of(const Plan& plan);

// Samples of the whole step.
[[nodiscard]] inline std::int64_t batch_of(const Plan& plan) { return plan.phases.back().step->options.batch; }

// Samples that go through the network together.
[[nodiscard]] inline std::int64_t sub_batch_of(const Plan& plan) {
  const StepOptions& options = plan.phases.front().step->options;
  return options.sub_batch > 0 && options.sub_batch < options.batch ? options.sub_batch : options.batch;
}

// Of the algorithm that it runs.
[[nodiscard]] inline Bytes workspace_bytes(const Step& step, const Run& run) {
  return step.algorithms_of(run.task)[run.algorithm].workspace;
}

// Bytes that residency `r` takes: the storage's, rounded up to the alignment.
[[nodiscard]] inline Bytes aligned_bytes(const Phase& phase, const Residency& r) {
  return phase.step->storage(r.storage).bytes.aligned(kAlignment);
}

}  // namespace tide
