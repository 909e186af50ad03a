// What planners that try several ways keep.
#pragma once

#include <string>
#include <utility>

#include "plan/timeline.h"
#include "planner/planner.h"

namespace tide {

// Of plans that take about as long, the one that moves less is better: as in joint planning, a copy
// may count for a part of its time even where it delays nothing.
constexpr double kPriceOfCopies = 0.05;

// The fastest plan so far, and the smallest floor.
class Best {
 public:
  explicit Best(const CostModel& cost, double price_of_copies = 0) : cost_(cost), price_of_copies_(price_of_copies) {}

  void offer_floor(Bytes floor, const std::string& bottleneck) {
    if (floor >= best_.floor && !best_.floor.is_zero()) return;
    best_.floor = floor;
    best_.bottleneck_task = bottleneck;
  }

  // Whether it is the fastest so far.
  bool offer(PlanResult result) {
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
      return false;
    }
    const double seconds = simulate(*result.plan, cost_).seconds +
                           (price_of_copies_ > 0 ? price_of_copies_ * copy_seconds(*result.plan) : 0);
    if (best_.plan && seconds >= seconds_) return false;
    seconds_ = seconds;
    const Bytes floor = best_.floor;
    std::string bottleneck = std::move(best_.bottleneck_task);
    best_ = std::move(result);
    best_.floor = floor;
    best_.bottleneck_task = std::move(bottleneck);
    return true;
  }
  [[nodiscard]] bool found() const { return best_.plan.has_value(); }
  [[nodiscard]] double seconds() const { return seconds_; }  // of the plan found, with the price of its copies
  [[nodiscard]] Bytes floor() const { return best_.floor; }
  [[nodiscard]] bool within(double seconds) const { return best_.plan && seconds_ <= seconds; }
  [[nodiscard]] PlanResult take() && { return std::move(best_); }

 private:
  [[nodiscard]] double copy_seconds(const Plan& plan) const {
    double seconds = 0;
    for (const Phase& phase : plan.phases)
      for (const Op& op : phase.ops)
        if (op.kind == OpKind::copy)
          seconds += phase.repeat * cost_.copy_seconds(phase.step->storage(op.storage).bytes, op.from, op.to);
    return seconds;
  }

  const CostModel& cost_;
  double price_of_copies_;
  PlanResult best_;
  double seconds_ = 0;
};

}  // namespace tide
