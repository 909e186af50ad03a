// moDNN's Algorithm 1 (X. Chen et al., 2018) on one step: works through the tasks once within a
// budget, with a clock for each lane, and records what it does. For every task
//
//   1. its operands get places: a free range; or neighbours that leave, those that delay least
//      (memory_list.h); or everything leaves and the task's own data come back side by side
//   2. its algorithm is the one with the largest gain: time saved, less the delay of making room
//      for its workspace, less the delay of the next data that could have come in its place
//   3. data for later tasks start to come back, where waiting for the end of this task would
//      delay those tasks (equation 4) and memory is not predicted to run out before them
//   4. what nobody needs any more is freed
//
// Activations and their gradients leave first, and only after a use. Where that does not make room,
// whatever does not persist may leave (saved state, the batch, gradients of parameters), so that any
// budget down to the largest task will do. What was copied out once is only freed the next time.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "planner/draft/recorder.h"
#include "planner/draft/step_clock.h"
#include "planner/modnn/memory_list.h"

namespace tide {

// Where the paper leaves room to guess.
struct ModnnGuess {
  double lead = 1;  // how many times its own length before it is needed a copy starts at the latest
  MemoryList::Fit fit = MemoryList::Fit::first;
  bool two_ends = true;       // what comes and goes lies at the other end of memory than activations
  bool packed_later = false;  // only bytes are counted here: addresses are found with all of the step known
};

class ModnnSchedule {
 public:
  // REQUIRES: memory >= smallest_floor (floor.h).
  ModnnSchedule(const StepFacts& facts, const CostModel& cost, Bytes memory, bool one_lane, const ModnnGuess& guess);

  // The draft has algorithms, and device addresses unless they are to be found later.
  [[nodiscard]] Draft run() &&;

 private:
  // Who may leave: after a use, activations and their gradients; or anything that is not in use.
  enum class Leaving : std::uint8_t { judiciously, anything };

  // What happens at one task (schedule.cpp).
  void execute(std::int32_t position);
  void bring_together(TaskId task);
  [[nodiscard]] bool place_operands(TaskId task, Leaving leaving);
  void load(TaskId task);
  struct Choice {
    std::uint32_t algorithm = 0;
    double start = 0, end = 0;
  };
  [[nodiscard]] Choice choose_algorithm(TaskId task, double start);
  [[nodiscard]] double prefetch_delay(Bytes workspace, double start, double end) const;
  void settle(TaskId task);

  // Room (offload.cpp).
  using Scheme = MemoryList::Scheme;
  [[nodiscard]] bool may_leave(StorageId id, Leaving leaving, std::int32_t horizon) const;
  [[nodiscard]] Scheme judge(const MemoryList::Range& range, double start) const;
  [[nodiscard]] std::optional<MemoryList::Place> find_place(Bytes bytes, MemoryList::End end, double now,
                                                            MemoryList::Fit fit) const;
  [[nodiscard]] std::optional<Scheme> find_leavers(Bytes bytes, Leaving leaving, std::int32_t horizon,
                                                   double start) const;
  [[nodiscard]] std::optional<Scheme> find_scheme(Bytes bytes, Leaving leaving, std::int32_t horizon,
                                                  double start) const;
  [[nodiscard]] MemoryList::End end_for(StorageId id) const;
  [[nodiscard]] bool allocate(StorageId id, Leaving leaving, std::int32_t horizon, double start);
  void occupy(StorageId id, Bytes address, double ready);
  void evict(StorageId id);
  void copy_out(StorageId id);
  void copy_in(StorageId id);
  void release(StorageId id);

  // Ahead of need (prefetch.cpp).
  void prefetch(double end);
  [[nodiscard]] bool is_useful(std::int32_t target);

  [[nodiscard]] StorageId storage(TensorId tensor) const { return step_.tensor(tensor).storage; }
  [[nodiscard]] bool fixed(StorageId id) const { return step_.storage(id).persistent; }
  [[nodiscard]] Bytes size(StorageId id) const { return step_.storage(id).bytes.aligned(); }
  [[nodiscard]] bool in_use(StorageId id) const { return pinned_[id.index()] == position_; }
  [[nodiscard]] std::int64_t room() const { return (capacity_ + memory_.free()).count() - memory_.capacity().count(); }
  [[nodiscard]] double copy_seconds(StorageId id) const { return seconds_[id.index()]; }
  // From the start of the task at hand to that of a later one, with the fastest algorithms.
  [[nodiscard]] double until(std::int32_t position) const { return clock_.between(position_, position); }
  // When the next copy can start.
  [[nodiscard]] double free(Lane lane) const {
    return one_lane_ ? std::max(clock_.free[Lane::out], clock_.free[Lane::in]) : clock_.free[lane];
  }
  [[nodiscard]] double now() const { return clock_.free[Lane::compute]; }

  const StepFacts& facts_;
  const Step& step_;
  const CostModel& cost_;
  bool one_lane_;
  ModnnGuess guess_;
  Bytes bottom_;    // what persists lies below
  Bytes capacity_;  // for everything else
  Recorder record_;
  MemoryList memory_;
  StorageId workspace_;              // its block in the list
  std::int32_t position_ = 0;        // of the task at hand
  std::vector<StorageId> operands_;  // its storages that do not persist, each once

  StepClock clock_;
  std::vector<double> seconds_;                        // by storage: to copy it
  std::vector<std::int32_t> next_;                     // by storage: next use of its value
  std::vector<std::int32_t> pinned_;                   // by storage: the newest task that it was an operand of
  std::vector<bool> used_;                             // by storage: since it was made or came back
  std::set<std::pair<std::int32_t, StorageId>> away_;  // in host memory only, by next use
  std::vector<std::int32_t> met_;                      // by storage: the last guess that came across it
  std::int32_t guesses_ = 0;
};

}  // namespace tide
