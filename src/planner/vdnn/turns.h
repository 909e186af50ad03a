// The layers of a step as vDNN counts them.
#pragma once

#include <vector>

#include "step/step.h"

namespace tide {

// The ordered tasks in runs of one layer each: its forward task; its backward tasks with the sums
// and updates that follow them.
class Turns {
 public:
  explicit Turns(const Step& step) : of_(step.ordered_tasks) {
    for (std::size_t t = 0; t < of_.size(); ++t) {
      const Task& task = step.tasks[t];
      const bool follows = !is_of_layer(task.kind);
      const Task* const before = first_.empty() ? nullptr : &step.tasks[first_.back()];
      const bool same = before != nullptr && before->layer == task.layer &&
                        (before->kind == TaskKind::forward) == (task.kind == TaskKind::forward);
      if (first_.empty() || (!follows && !same)) first_.push_back(t);
      of_[t] = first_.size() - 1;
    }
  }

  [[nodiscard]] std::size_t of(TaskId task) const { return of_[task.index()]; }
  [[nodiscard]] std::size_t count() const { return first_.size(); }
  [[nodiscard]] std::size_t first_task(std::size_t turn) const { return first_[turn]; }
  [[nodiscard]] std::size_t end_task(std::size_t turn) const {
    return turn + 1 < first_.size() ? first_[turn + 1] : of_.size();
  }

 private:
  std::vector<std::size_t> of_, first_;
};

}  // namespace tide
