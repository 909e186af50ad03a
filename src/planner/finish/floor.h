// The least memory that a step can do with.
#pragma once

#include <string>

#include "planner/draft/resting_storages.h"

namespace tide {

// The operands of a task, each storage once, and the workspace of an algorithm. Persistent storages that do not rest
// are not counted: they are there anyway.
class TaskBytes {
 public:
  explicit TaskBytes(const Step& step, Resting resting = {});
  [[nodiscard]] Bytes operator()(TaskId task, std::uint32_t algorithm);

 private:
  const Step& step_;
  Resting resting_;
  std::vector<std::int32_t> seen_;  // by storage: the last call that came across it
  std::int32_t calls_ = 0;
};

// The task with the largest sum of operands and smallest workspace, by storage: no plan that
// keeps the persistent storages that do not rest besides can do with less.
struct LargestTask {
  TaskId task;
  Bytes bytes;
};
[[nodiscard]] LargestTask largest_task(const Step& step, const Resting& resting = {});

// Persistent storages stand at the bottom in table order, so that every step variant of
// one network (other batch, evaluation) has them at the same addresses. Those that rest do not
// count.
[[nodiscard]] Bytes persistent_bytes(const Step& step, const Resting& resting = {});

// The least that any plan can do with: the largest task with its smallest workspace, what the
// step starts with, and the persistent storages that do not rest in host memory.
struct Floor {
  Bytes bytes;
  std::string task;
};
[[nodiscard]] Floor smallest_floor(const Step& step, const Resting& resting = {});
// The answer where the budget is below it.
[[nodiscard]] PlanResult below(const Floor& floor);

}  // namespace tide
