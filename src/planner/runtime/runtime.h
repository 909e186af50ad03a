// SuperNeurons' runtime, run ahead of time: the block pool, the tensor cache and the
// recomputation rules work through the step task by task within a budget, and what they do
// is recorded. Things move or are dropped only when an allocation finds no room:
//
//   room:       first hole that is free early enough
//   no room:    the cache names victims; those that can be run again are dropped, the
//               others are copied out (once: a copy that is still there is enough)
//   no victims: locked tensors are in the way; everything leaves and the task's own
//               tensors come back side by side, which always fits above the floor
//
// Evictions are decided late but copied early: a copy waits for the value only, so that
// the out lane runs ahead of the need.
#pragma once

#include <map>
#include <optional>

#include "memory/block_pool.h"
#include "memory/tensor_cache.h"
#include "planner/draft/recorder.h"
#include "planner/draft/step_clock.h"
#include "planner/replay/recompute.h"

namespace tide {

// When things come back.
enum class Prefetch : std::uint8_t {
  never,    // when they are needed
  in_time,  // when the copy has to start, so that workspaces have the room until then
  at_once,  // as soon as there is room: for a link that must not rest
};

struct RuntimeRules {
  Recompute recompute = Recompute::cost_aware;
  Replacement replacement = Replacement::next_use;
  Prefetch prefetch = Prefetch::never;
};

// Works through a step once. REQUIRES: memory >= smallest_floor.
class VirtualRuntime {
 public:
  VirtualRuntime(const StepFacts& facts, const CostModel& cost, Bytes memory, const RuntimeRules& rules);

  // The draft has device addresses and algorithms.
  [[nodiscard]] Draft run() &&;
  // The same, or nothing where it takes more ops: what may be dropped close to the floor may be
  // run again without end.
  [[nodiscard]] std::optional<Draft> run_within(std::size_t ops) &&;

 private:
  // What happens at one task (runtime.cpp).
  void execute(TaskId task);
  void make_available(TensorId tensor);
  [[nodiscard]] TensorId missing_source(TensorId tensor) const;
  void require_replay(TensorId tensor) const;
  [[nodiscard]] TensorId replay_source(TensorId tensor) const;
  void bring_together(TaskId task);
  bool try_to_bring_together(TaskId task);
  // False, with nothing done, where that would be one op too many.
  [[nodiscard]] bool launch(TaskId task);
  void settle(TaskId task);
  void settle_tensor(TensorId tensor, bool read_by_ordered);

  // Room (runtime_memory.cpp).
  bool allocate(StorageId storage);
  void release(StorageId storage);
  void evict(StorageId storage);
  void copy_out(StorageId storage);
  void copy_in(StorageId storage);
  void evict_all();
  void update_rank(StorageId storage);
  struct Hole {
    Bytes address;
    double ready = 0;  // when the last copy out of it is over
  };
  [[nodiscard]] std::optional<Hole> choose_hole(Bytes bytes, bool low) const;
  [[nodiscard]] double ready_time(std::int64_t begin, std::int64_t end) const;
  void set_ready_time(std::int64_t begin, std::int64_t end, double ready);

  // Ahead of need (runtime_prefetch.cpp).
  void prefetch();
  [[nodiscard]] double fetch_seconds(StorageId id) const {
    return cost_.copy_seconds(step_.storage(id).bytes, Tier::host, Tier::device);
  }

  [[nodiscard]] bool available(TensorId tensor) const {
    return record_.holds(tensor, Tier::device) || record_.holds(tensor, Tier::host);
  }
  [[nodiscard]] StorageId storage(TensorId tensor) const { return step_.tensor(tensor).storage; }
  // Whether it has its place on the device for good.
  [[nodiscard]] bool fixed(StorageId id) const { return step_.storage(id).persistent && !facts_.rests(id); }
  [[nodiscard]] Bytes size(StorageId id) const { return step_.storage(id).bytes.aligned(); }
  // Whether an ordered task that has not run yet uses it.
  [[nodiscard]] bool needed(TensorId tensor) const { return facts_.last_use(tensor) > done_; }
  [[nodiscard]] bool may_drop(TensorId tensor) const;
  static TensorCache::Key key(StorageId id) { return static_cast<TensorCache::Key>(id.index()); }

  const StepFacts& facts_;
  const Step& step_;
  const CostModel& cost_;
  RuntimeRules rules_;
  Bytes bottom_;  // what is fixed lies below
  Recorder record_;
  BlockPool pool_;
  TensorCache cache_;
  std::vector<BlockPool::NodeId> nodes_;  // by storage
  std::vector<std::int32_t> pending_;     // by tensor: tasks on their way that read it
  std::int32_t done_ = -1;                // the last ordered task that has run

  StepClock clock_;
  struct InFlight {
    std::int64_t end;
    double ready;
  };
  std::map<std::int64_t, InFlight> in_flight_;  // by begin, disjoint: whose old contents are, or were, being copied out
  std::vector<std::int32_t> met_;               // by storage: the last prefetch that came across it
  std::int32_t prefetches_ = 0;
  std::int32_t most_ops_ = INT32_MAX;
  bool stopped_ = false;          // it would have taken more
  std::vector<StorageId> fresh_;  // of the task at hand: all its storages, each once
};

}  // namespace tide
