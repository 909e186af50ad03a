// For policies that move nothing and lay out a whole step themselves: a plan from addresses.
#pragma once

#include "planner/planner.h"

namespace tide {

// How the stays of a plan are given addresses.
struct Layout {
  std::vector<Residency> residencies;
  Bytes workspace;  // one place for all of them: as large as the largest
  Bytes peak;
  std::string bottleneck;
};

// One workspace, as large as the largest, behind everything else.
void add_workspace(const Step& step, const std::vector<Op>& ops, Bytes end, Layout& layout);

// Puts the parts together; without a plan where the peak exceeds the budget.
[[nodiscard]] PlanResult finish_layout(Step step, std::vector<Op> ops, Layout layout, const PlanningContext& context);

}  // namespace tide
