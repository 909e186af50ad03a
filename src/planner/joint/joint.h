// Our own planner: for each tensor that the backward pass needs, keep it, drop it and run it
// again, or let it leave and come back, whichever costs least time per byte at the worst peak.
//
//   1. play the step with the decisions so far and look at what is alive when (absence.h)
//   2. at the highest peak, take the cheapest decision that lowers it: between the passes if that helps, else
//      wherever a value lies idle; again until all fits
//   3. what is run again needs memory of its own, so play it once more; until nothing is to do
//   4. take back what turned out not to be needed, the dearest first
//
// What a copy costs depends on how busy the link is, which only the simulator knows; so plans
// are made for several guesses (Trade) and the caller keeps the fastest.
#pragma once

#include <memory>
#include <optional>

#include "planner/draft/recorder.h"

namespace tide {

struct Trade {
  double link_share = 0;   // of the pass's time that copies may take before they count in full
  double hidden_cost = 0;  // what counts of a copy's time below that
  // What leaves first: what is away longest, since its copies have the most time; or what is dear to run again.
  enum class First : std::uint8_t { longest, dearest } leaves = First::longest;
  bool fast_workspaces = false;  // memory is kept free for those of the fastest algorithms
};

// The decisions that fit into one limit after the other, each made from those for the one before: a draft depends on
// the limits that were asked for, and on nothing else.
class JointChain {
 public:
  // `heads` (by tensor) are not dropped. All of it outlives the chain.
  JointChain(const StepFacts& facts, const CostModel& cost, const PlanningContext& context, const Trade& trade,
             const std::vector<bool>& heads);
  ~JointChain();
  JointChain(JointChain&&) noexcept;
  JointChain& operator=(JointChain&&) noexcept;

  // Played. Nothing where no decisions suffice, or did for a limit before. REQUIRES: limits fall.
  [[nodiscard]] std::optional<Draft> down_to(Bytes limit);

 private:
  class Planner;
  std::unique_ptr<Planner> planner_;
};

}  // namespace tide
