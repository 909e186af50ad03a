// What may leave the device at all, and how fast.
#pragma once

#include <algorithm>

#include "cost/model.h"
#include "planner/options.h"

namespace tide {

[[nodiscard]] inline bool has_peer(const PlannerOptions& options) {
  return options.memory[Tier::peer] && !options.memory[Tier::peer]->is_zero();
}

// Whether there is any memory beside the device's.
[[nodiscard]] inline bool can_leave(const PlannerOptions& options) {
  return !options.memory[Tier::host] || !options.memory[Tier::host]->is_zero() || has_peer(options);
}

// There or back, by the fastest way.
[[nodiscard]] inline double seconds_to_leave(const CostModel& cost, const PlannerOptions& options, Bytes bytes) {
  const double host = cost.copy_seconds(bytes, Tier::device, Tier::host);
  return has_peer(options) ? std::min(host, cost.copy_seconds(bytes, Tier::device, Tier::peer)) : host;
}

}  // namespace tide
