// Every plan that a planner tries goes through a keeper: it is timed, simulated once, in debug builds checked, written
// down, and the best is kept.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/stopwatch.h"
#include "planner/planner.h"

namespace tide {

// How plans are compared, and what is answered where none fits.
struct Taste {
  // Of plans that take about as long, the one that moves less is better: a copy may count for a part of its time even
  // where it delays nothing.
  double price_of_copies = 0;
  // Where none fits: the smallest floor of all, and of tiers other than the device the least demanding; or the whole
  // answer with the smallest floor, where the floor of a plan is its own.
  enum class Failure : std::uint8_t { least_of_all, smallest_floor } failure = Failure::least_of_all;
};
inline constexpr Taste kMovesLess{.price_of_copies = 0.05};

class Keeper {
 public:
  explicit Keeper(const CostModel& cost, const Taste& taste = {}) : cost_(cost), taste_(taste) {}

  // Plans in one more way. Whether it is the best so far.
  template <typename Make>
  bool consider(std::string_view name, Make&& make) {
    const Stopwatch watch;
    PlanResult result = std::forward<Make>(make)();
    return keep(name, std::move(result), watch.seconds());
  }
  // The same for a result that is there already.
  bool consider(std::string_view name, PlanResult result) { return keep(name, std::move(result), 0); }
  // A floor that is known without a plan.
  void consider_floor(Bytes floor, const std::string& bottleneck);

  [[nodiscard]] bool found() const { return best_.plan.has_value(); }
  // Of the plan found, with the price of its copies.
  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] Bytes floor() const { return best_.floor[Tier::device]; }
  // The least of that and of what was to be beaten before.
  [[nodiscard]] double to_beat(double seconds) const { return found() ? std::min(seconds, seconds_) : seconds; }
  [[nodiscard]] bool within(double seconds) const { return found() && seconds_ <= seconds; }
  [[nodiscard]] const PlanResult& best() const { return best_; }
  [[nodiscard]] PlanResult take() &&;

 private:
  bool keep(std::string_view name, PlanResult result, double took);
  void note_failure(PlanResult result);
  void replace(PlanResult result);
  [[nodiscard]] double copy_seconds(const Plan& plan) const;

  const CostModel& cost_;
  Taste taste_;
  PlanResult best_;
  bool any_ = false;  // whether one was tried
  double seconds_ = 0;
  std::vector<Trial> trials_;
};

// Fills in PlanResult::seconds where it is not known, and in debug builds has the checker prove the plan.
void settle(PlanResult& result, const CostModel& cost);

}  // namespace tide
