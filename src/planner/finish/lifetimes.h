// A step as it is, with nothing moved or run again: its ops, and from when to when each storage is needed.
#pragma once

#include <vector>

#include "memory/placement.h"
#include "plan/plan.h"

namespace tide {

// One run per ordered task on the compute lane, each with its first algorithm.
[[nodiscard]] std::vector<Op> runs_in_order(const Step& step);

// By storage: from its first to its last use over the ordered tasks; persistent storages
// from kEntry to the end, inputs from kEntry to their last use. Storages that no task
// uses and that do not persist have last < first.
[[nodiscard]] std::vector<Interval> lifetimes(const Step& step);

// The most that is alive at one time.
[[nodiscard]] Bytes bytes_alive(const Step& step);

}  // namespace tide
