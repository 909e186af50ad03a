// Runs the ops of a phase with its lanes side by side: the compute lane on the calling
// thread, each copy lane that the phase uses on a thread of its own, started once and parked
// between steps.
//
// Since a lane runs its ops in order, what it has done is one number; "wait for these ops" is
// "wait until those lanes have done so many". A step takes no lock and allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "plan/plan.h"

namespace tide {

class Lanes {
 public:
  // `run(op)` runs one op and may throw. REQUIRES: waits are of earlier ops (the checker's).
  Lanes(const Phase& phase, std::function<void(std::size_t)> run);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // The op that failed first and what it threw; an empty `error` where all went well.
  struct Outcome {
    std::size_t op = 0;
    std::exception_ptr error;
  };
  // Runs every op once. Returns when all lanes are at their end, or have stopped because one
  // has failed. Not thread safe.
  [[nodiscard]] Outcome run_step();

 private:
  struct Wait {
    Lane lane = Lane::compute;
    std::uint32_t count = 0;
  };
  struct Item {
    std::uint32_t op = 0;
    std::uint32_t first_wait = 0, wait_count = 0;  // in Lane::waits
  };
  // A cache line apart: each is written by one thread and watched by the others.
  struct alignas(64) LaneState {
    std::atomic<std::uint32_t> done{0};      // ops of this step, or kStopped
    std::atomic<std::uint32_t> finished{0};  // the last step it was through with
    std::vector<Item> items;
    std::vector<Wait> waits;
    std::thread thread;
  };

  void resolve(const Phase& phase);
  void start_threads();
  void stop_threads() noexcept;
  void serve(Lane lane);
  void run_lane(LaneState& lane);
  // False: the step has been stopped.
  [[nodiscard]] bool wait_for(const Item& item, const LaneState& lane);

  std::function<void(std::size_t)> run_;
  PerLane<LaneState> lanes_;
  alignas(64) std::atomic<std::uint32_t> step_{0};
  std::atomic<bool> stop_{false};  // an op of this step has failed
  std::atomic<bool> quit_{false};
  Outcome outcome_;  // written by whoever set stop_
};

}  // namespace tide
