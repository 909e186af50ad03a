// Writes down what a policy does, op by op, as a draft: the ops in their order and the
// stays in each tier. The policy says what to do; the recorder follows which value every
// stay holds, so that a policy cannot lose track of it.
#pragma once

#include <optional>
#include <vector>

#include "planner/draft/facts.h"

namespace tide {

// A stay while it is being planned. For placement it may be held a while longer at either
// end than it is used, so that a copy has time to run beside computation.
struct DraftStay {
  StorageId storage;
  Tier tier = Tier::device;
  std::int32_t first = 0, last = 0;            // first and last use
  std::int32_t hold_first = 0, hold_last = 0;  // first >= hold_first, last <= hold_last
  Bytes address;
};

struct Draft {
  std::vector<Op> ops;
  std::vector<DraftStay> stays;
  // Whether copies take no more room than the ops they stand between and algorithms are chosen, so
  // that finishing it leaves both alone.
  bool settled = false;
  bool held = false;  // where it is settled: stays take their places for as long as they are held
};

class Recorder {
 public:
  // Persistent storages and inputs are on the device when the step starts, the persistent
  // ones at the bottom in table order; those that rest are at the bottom of host memory instead.
  explicit Recorder(const Step& step, const Resting& resting = {});

  // A stay from the next op on. REQUIRES: the storage has none in this tier.
  void open(StorageId storage, Tier tier, Bytes address = {});
  // The same on the device for every operand of a task that has none.
  void open_operands(TaskId task);
  // Its end, with the last op that used it. A stay that nobody used never was. REQUIRES: not
  // the place of a persistent storage between steps.
  void close(StorageId storage, Tier tier);

  // REQUIRES: every operand has a stay on the device, and those read hold their value.
  std::int32_t run(TaskId task, std::uint32_t algorithm = 0, Bytes workspace = {});
  // REQUIRES: stays in both tiers.
  std::int32_t copy(StorageId storage, Tier from, Tier to);
  // From host memory to the device, into a stay of its own where it has none there.
  std::int32_t fetch(StorageId storage);

  [[nodiscard]] bool has(StorageId storage, Tier tier) const { return state(storage, tier).stay >= 0; }
  // What it holds there; invalid: no stay, or nothing written yet.
  [[nodiscard]] TensorId value(StorageId storage, Tier tier) const { return state(storage, tier).value; }
  [[nodiscard]] bool holds(TensorId tensor, Tier tier) const {
    return value(step_.tensor(tensor).storage, tier) == tensor;
  }
  [[nodiscard]] Bytes address(StorageId storage) const {
    return stays_[static_cast<std::size_t>(state(storage, Tier::device).stay)].address;
  }
  [[nodiscard]] std::int32_t next_op() const { return static_cast<std::int32_t>(ops_.size()); }
  [[nodiscard]] const Op& op(std::int32_t index) const { return ops_[static_cast<std::size_t>(index)]; }

  // Ends what is left and hands over. REQUIRES: what rests was written back.
  [[nodiscard]] Draft finish() &&;

 private:
  struct State {
    std::int32_t stay = -1;
    TensorId value;
  };
  State& state(StorageId storage, Tier tier) { return states_[tier][storage.index()]; }
  [[nodiscard]] const State& state(StorageId storage, Tier tier) const { return states_[tier][storage.index()]; }
  void use(StorageId storage, Tier tier);

  [[nodiscard]] Tier home(StorageId storage) const { return rests(resting_, storage) ? Tier::host : Tier::device; }

  const Step& step_;
  Resting resting_;
  std::vector<Op> ops_;
  std::vector<DraftStay> stays_;
  PerTier<std::vector<State>> states_;  // by storage
};

// Bytes of data (activations and their gradients) alive at each op that runs a task, as
// the papers count: copies take no time.
[[nodiscard]] std::vector<std::int64_t> live_data(const Step& step, const Draft& draft);

}  // namespace tide
