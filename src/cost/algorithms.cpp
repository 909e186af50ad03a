#include "cost/algorithms.h"

#include <algorithm>
#include <optional>

namespace tide {

std::uint32_t fastest_algorithm(const Step& step, const CostModel& cost, TaskId task) {
  const std::size_t count = step.algorithms_of(task).size();
  std::uint32_t best = 0;
  for (std::uint32_t a = 1; a < count; ++a)
    if (cost.task_seconds(step, task, a) < cost.task_seconds(step, task, best)) best = a;
  return best;
}

double fastest_seconds(const Step& step, const CostModel& cost, TaskId task) {
  return cost.task_seconds(step, task, fastest_algorithm(step, cost, task));
}

double compute_seconds(const Step& step, const CostModel& cost, TaskId task, std::size_t algorithm) {
  return is_collective(step.task(task).kind) ? 0 : cost.task_seconds(step, task, algorithm);
}

double fastest_compute_seconds(const Step& step, const CostModel& cost, TaskId task) {
  return compute_seconds(step, cost, task, fastest_algorithm(step, cost, task));
}

double fastest_seconds_within(const Step& step, const CostModel& cost, TaskId task, std::int64_t bytes) {
  const auto& algorithms = step.algorithms_of(task);
  std::optional<double> least;
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    if (algorithms[a].workspace.aligned().count() > bytes) continue;
    const double seconds = cost.task_seconds(step, task, a);
    if (!least || seconds < *least) least = seconds;
  }
  return least ? *least : cost.task_seconds(step, task, smallest_algorithm(step, task));
}

std::uint32_t smallest_algorithm(const Step& step, TaskId task) {
  const auto& algorithms = step.algorithms_of(task);
  const auto least = std::min_element(algorithms.begin(), algorithms.end(),
                                      [](const Algorithm& a, const Algorithm& b) { return a.workspace < b.workspace; });
  return static_cast<std::uint32_t>(least - algorithms.begin());
}

}  // namespace tide
