// Of several mirror plans, each played and packed: the smallest, or the fastest within a budget.
#pragma once

#include "cost/memoized.h"
#include "planner/replay/mirror.h"

namespace tide {

class MirrorSearch {
 public:
  MirrorSearch(Step step, const CostModel& model, const PlanningContext& context);

  [[nodiscard]] const Step& step() const { return step_; }
  [[nodiscard]] const StepFacts& facts() const { return facts_; }
  [[nodiscard]] const std::vector<bool>& replayable() const { return replayable_; }
  [[nodiscard]] const CostModel& cost() const { return cost_; }
  // The same count for every task that can be run again.
  [[nodiscard]] MirrorCounts counts(std::int32_t count) const;

  // Plans that the floor is taken from.
  void offer(const MirrorCounts& counts);
  // Plans that may be faster. Whether it fits.
  bool offer_faster(const MirrorCounts& counts);
  // Whether the budget is larger than the smallest plan, so that there may be a faster one.
  [[nodiscard]] bool has_room() const {
    return context_.memory[Tier::device] && *context_.memory[Tier::device] > smallest_bytes_;
  }
  [[nodiscard]] const MirrorCounts& smallest() const { return smallest_counts_; }

  [[nodiscard]] PlanResult take() &&;

 private:
  void consider(Draft draft);

  Step step_;
  MemoizedCost cost_;
  const PlanningContext& context_;
  StepFacts facts_;
  std::vector<bool> replayable_;
  Draft smallest_;
  MirrorCounts smallest_counts_;
  Bytes smallest_bytes_;
  PlanResult fastest_;
};

}  // namespace tide
