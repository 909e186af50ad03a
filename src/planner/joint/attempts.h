// The joint planner with every guess about copies and every length of segments.
#pragma once

#include <map>
#include <span>

#include "planner/joint/joint.h"
#include "planner/joint/segments.h"
#include "planner/search/keeper.h"

namespace tide {

// Its drafts of one step.
class JointDrafts {
 public:
  // All of it outlives the drafts, but for the context, of whose budgets only other tiers' count.
  JointDrafts(const StepFacts& facts, const CostModel& cost, const PlanningContext& context,
              const std::vector<std::vector<bool>>& heads);

  // For so many bytes, from those for the limit before. REQUIRES: limits fall.
  std::span<const Draft> down_to(Bytes limit);
  // None where a limit was not asked for.
  [[nodiscard]] std::span<const Draft> at(Bytes limit) const;

 private:
  std::vector<JointChain> chains_;
  std::map<Bytes, std::vector<Draft>> made_;
};

// Offers drafts as plans within the context's budget: those that are forecast to be the fastest, where they pack. Which
// ones does not depend on what the keeper has, but such as cannot be faster than `seconds_to_beat` are left out.
// REQUIRES: a device budget.
void consider_joint_plans(const Step& step, std::span<const std::span<const Draft>> drafts, const CostModel& cost,
                          const PlanningContext& context, double seconds_to_beat, Keeper& keeper);

// Where a step is so large that a few guesses have to do.
[[nodiscard]] bool is_large(const Step& step);

}  // namespace tide
