// Recomputation by mirror counts (sublinear paper, Algorithm 2), on any graph. A task with count 0
// keeps what it makes; one with count k is run again up to k times, each time for what has at
// least the same count, and the last time for its own backward task:
//
//   count        0     1     1     0     1     1     0        sublinear: heads between segments
//   count        0     2     1     2     0     2     1 ...    recursive: heads within segments
//
//   copy k of a task reads copy min(k, count) of each of its sources
#pragma once

#include "planner/draft/recorder.h"

namespace tide {

using MirrorCounts = std::vector<std::int32_t>;  // by ordered task

// By ordered task: whether it can be run again whenever the backward pass asks for what it made.
// REQUIRES: results in place were merged by merge_replayable, or not at all, or by the rules.
[[nodiscard]] std::vector<bool> replayable_tasks(const StepFacts& facts);

// Plays the step. Counts of tasks that cannot be run again are taken for 0, and results in place
// have one count with what they overwrite, the smallest.
[[nodiscard]] Draft mirror(const StepFacts& facts, const std::vector<bool>& replayable, MirrorCounts counts);

}  // namespace tide
