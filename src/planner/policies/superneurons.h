// What SuperNeurons can be told, and its plans, which other policies begin with.
#pragma once

#include "memory/tensor_cache.h"
#include "planner/planner.h"
#include "planner/replay/recompute.h"

namespace tide {

struct SuperneuronsOptions {
  Recompute recompute = Recompute::cost_aware;  // auto too: whether anything is dropped at all
  bool cache = true;                            // things move and are run again only where memory is short; off: always
  Replacement replacement = Replacement::next_use;
  std::vector<LayerKind> checkpoints = {};  // whose outputs move (offload too) or are not dropped; empty: the paper's
};

PlanResult plan_superneurons(Step step, const CostModel& cost, const PlanningContext& context);

}  // namespace tide
