#include "cost/memoized.h"

namespace tide {

MemoizedCost::MemoizedCost(const CostModel& model, const Step& step) : model_(model) {
  for (std::size_t t = 0; t < step.tasks.size(); ++t) {
    first_.push_back(static_cast<std::uint32_t>(seconds_.size()));
    for (std::size_t a = 0; a < step.algorithms_of(TaskId(t)).size(); ++a)
      seconds_.push_back(model.task_seconds(step, TaskId(t), a));
  }
}

}  // namespace tide
