// What planners that try several ways keep.
#pragma once

#include <string>
#include <utility>

#include "plan/timeline.h"
#include "planner/planner.h"

namespace tide {

// The fastest plan so far, and the smallest floor.
class Best {
 public:
  explicit Best(const CostModel& cost) : cost_(cost) {}

  void offer_floor(Bytes floor, const std::string& bottleneck) {
    if (floor >= best_.floor && !best_.floor.is_zero()) return;
    best_.floor = floor;
    best_.bottleneck_task = bottleneck;
  }

  void offer(PlanResult result) {
    offer_floor(result.floor, result.bottleneck_task);
    if (!result.plan) {
      // Why there is none, as the least demanding sees it: some of those tried fail on the
      // device anyway.
      const bool better = best_.short_of == Tier::device || result.host_floor < best_.host_floor;
      if (!best_.plan && result.short_of != Tier::device && better) {
        best_.short_of = result.short_of;
        best_.host_floor = result.host_floor;
        best_.disk_floor = result.disk_floor;
      }
      return;
    }
    const double seconds = simulate(*result.plan, cost_).seconds;
    if (best_.plan && seconds >= seconds_) return;
    seconds_ = seconds;
    const Bytes floor = best_.floor;
    std::string bottleneck = std::move(best_.bottleneck_task);
    best_ = std::move(result);
    best_.floor = floor;
    best_.bottleneck_task = std::move(bottleneck);
  }
  [[nodiscard]] bool found() const { return best_.plan.has_value(); }
  [[nodiscard]] double seconds() const { return seconds_; }  // of the plan found
  [[nodiscard]] Bytes floor() const { return best_.floor; }
  [[nodiscard]] bool within(double seconds) const { return best_.plan && seconds_ <= seconds; }
  [[nodiscard]] PlanResult take() && { return std::move(best_); }

 private:
  const CostModel& cost_;
  PlanResult best_;
  double seconds_ = 0;
};

}  // namespace tide
