// What a rank is doing, told to those who watch it (cluster/watch.h): the ops of its steps, and what it does with the
// others outside of them.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cluster/watch.h"
#include "cost/model.h"
#include "executor/op_observer.h"

namespace tide {

// An op of a lane that computes or copies goes before one that all ranks do together: a rank that waits for others is
// not to blame for anything.
class WatchedOps final : public OpObserver {
 public:
  // Both outlive it.
  WatchedOps(Watch& watch, const CostModel& cost)
      : watch_(watch), cost_(cost), recorded_(watch.name("a recorded step")) {}

  void on_phase(const Phase& phase) override;
  void on_begin(const Phase& phase, std::size_t op) noexcept override;
  void on_end(const Phase& phase, std::size_t op) noexcept override;
  void on_recorded_begin(const Phase& phase) noexcept override;
  void on_recorded_end(const Phase& phase) noexcept override;

 private:
  struct Named {
    Watch::Operation operation = Watch::Operation::preparing;
    double seconds = 0;
  };
  void announce() noexcept;

  Watch& watch_;
  const CostModel& cost_;
  Watch::Operation recorded_;
  std::map<const Phase*, std::vector<Named>> phases_;
  std::mutex mutex_;
  PerLane<const Named*> current_{nullptr};
};

// The same ranks, whose calls are told to the watch. Both outlive it.
[[nodiscard]] std::unique_ptr<Communicator> make_watched(Communicator& communicator, Watch& watch);

}  // namespace tide
