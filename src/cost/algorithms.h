// Of the ways to run a task: which is the fastest, and which takes the least memory. Backends list the fastest first by
// what they know; how long each takes is the cost model's to say.
#pragma once

#include "cost/model.h"

namespace tide {

// The first of those that take the least time.
[[nodiscard]] std::uint32_t fastest_algorithm(const Step& step, const CostModel& cost, TaskId task);
[[nodiscard]] double fastest_seconds(const Step& step, const CostModel& cost, TaskId task);

// How long a task keeps the compute lane busy: what all ranks do together does not.
[[nodiscard]] double compute_seconds(const Step& step, const CostModel& cost, TaskId task, std::size_t algorithm);
[[nodiscard]] double fastest_compute_seconds(const Step& step, const CostModel& cost, TaskId task);

// The first of those with the smallest workspace.
[[nodiscard]] std::uint32_t smallest_algorithm(const Step& step, TaskId task);

// Of the fastest whose workspace has so many bytes at most; of the smallest where none has.
[[nodiscard]] double fastest_seconds_within(const Step& step, const CostModel& cost, TaskId task, std::int64_t bytes);

}  // namespace tide
