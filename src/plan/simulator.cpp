#include <algorithm>

#include "cost/algorithms.h"
#include "plan/timeline.h"

namespace tide {

Timeline simulate(const Plan& plan, const CostModel& cost) {
  Timeline timeline;
  for (const Phase& phase : plan.phases) {
    std::vector<double> durations;
    durations.reserve(phase.ops.size());
    for (const Op& op : phase.ops)
      durations.push_back(
          op.is_run() ? cost.task_seconds(*phase.step, op.run().task, op.run().algorithm)
                      : cost.copy_seconds(phase.step->storage(op.copy().storage).bytes, op.copy().from, op.copy().to));
    for (std::int32_t round = 0; round < phase.repeat; ++round) {
      const std::size_t base = timeline.spans.size();
      PerLane<double> lane_free(timeline.seconds);
      for (std::size_t i = 0; i < phase.ops.size(); ++i) {
        const Op& op = phase.ops[i];
        double& free = lane_free[op.lane];
        double start = free;
        for (const std::int32_t wait : op.waits)
          start = std::max(start, timeline.spans[base + static_cast<std::size_t>(wait)].end);
        free = start + durations[i];
        timeline.spans.push_back({static_cast<std::int32_t>(i), start, free});
      }
      timeline.seconds = *std::max_element(lane_free.begin(), lane_free.end());
    }
  }
  return timeline;
}

double ideal_seconds(const Step& step, const CostModel& cost) {
  PerLane<double> free;
  std::vector<double> ready(step.tensors.size(), 0);  // by tensor: when it is there
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    double& lane = free[lane_of(step.tasks[t].kind)];
    for (const Operand& operand : step.operands_of(TaskId(t)))
      if (operand.access == Access::read) lane = std::max(lane, ready[operand.tensor.index()]);
    lane += fastest_seconds(step, cost, TaskId(t));
    for (const Operand& operand : step.operands_of(TaskId(t)))
      if (operand.access != Access::read) ready[operand.tensor.index()] = lane;
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace tide
