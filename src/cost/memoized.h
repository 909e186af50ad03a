// A cost model whose answers about one step are kept: planners ask the same again and again.
#pragma once

#include <vector>

#include "cost/model.h"

namespace tide {

class MemoizedCost final : public CostModel {
 public:
  // For `step` and for steps with the same tasks, such as one with results merged in place. The
  // model outlives this.
  MemoizedCost(const CostModel& model, const Step& step);

  [[nodiscard]] std::string name() const override { return model_.name(); }
  [[nodiscard]] double task_seconds(const Step& /*step*/, TaskId task, std::size_t algorithm) const override {
    return seconds_[first_[task.index()] + algorithm];
  }
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier from, Tier to) const override {
    return model_.copy_seconds(bytes, from, to);
  }

 private:
  const CostModel& model_;
  std::vector<std::uint32_t> first_;  // by task: its first algorithm in seconds_
  std::vector<double> seconds_;
};

}  // namespace tide
