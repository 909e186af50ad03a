#include "planner/replay/split_points.h"

#include <algorithm>

namespace tide {

SplitPoints::SplitPoints(const StepFacts& facts, const std::vector<bool>& replayable) {
  const Step& step = facts.step();
  const auto forward = static_cast<std::size_t>(facts.first_backward());
  std::vector<std::int64_t> waiting(forward + 1, 0), made(forward, 0);
  std::vector<TensorId> newest(step.storages.size());
  for (std::size_t t = 0; t < forward; ++t)
    for (const Operand& operand : step.operands_of(TaskId(t)))
      if (operand.access != Access::read) newest[step.tensor(operand.tensor).storage.index()] = operand.tensor;
  std::vector<std::int32_t> blocked(forward + 1, 0);  // where something waits that cannot be kept
  for (std::size_t t = 0; t < forward; ++t) {
    for (const Operand& operand : step.operands_of(TaskId(t))) {
      if (operand.access == Access::read) continue;
      const Tensor& tensor = step.tensor(operand.tensor);
      const Storage& storage = step.storage(tensor.storage);
      if (storage.persistent) continue;
      const std::int64_t bytes = storage.bytes.aligned().count();
      if (replayable[t] && facts.last_use(operand.tensor) >= facts.first_backward()) made[t] += bytes;
      const auto uses = facts.uses(operand.tensor);
      const std::int32_t last = *std::prev(std::lower_bound(uses.begin(), uses.end(), facts.first_backward())) - 1;
      if (last < static_cast<std::int32_t>(t)) continue;
      waiting[t] += bytes;
      waiting[static_cast<std::size_t>(last) + 1] -= bytes;
      if (newest[tensor.storage.index()] != operand.tensor) {
        ++blocked[t];
        --blocked[static_cast<std::size_t>(last) + 1];
      }
      waiting_.push_back({TaskId(t), static_cast<std::int32_t>(t), last, bytes});
    }
  }
  for (std::size_t t = 1; t <= forward; ++t) {
    waiting[t] += waiting[t - 1];
    blocked[t] += blocked[t - 1];
  }
  for (std::size_t t = 0; t < forward; ++t) {
    total_ += made[t];
    if (t + 1 == forward || blocked[t] > 0 || waiting[t] == 0) continue;
    const bool least = (t == 0 || waiting[t] <= waiting[t - 1] || blocked[t - 1] > 0) &&
                       (waiting[t] <= waiting[t + 1] || blocked[t + 1] > 0);
    if (least) points_.push_back({static_cast<std::int32_t>(t), waiting[t], total_});
  }
}

std::size_t SplitPoints::narrowest(std::size_t first, std::size_t last) const {
  const auto at = [&](std::size_t i) { return points_.begin() + static_cast<std::ptrdiff_t>(i); };
  return static_cast<std::size_t>(
      std::min_element(at(first), at(last),
                       [](const SplitPoint& a, const SplitPoint& b) { return a.waiting < b.waiting; }) -
      points_.begin());
}

std::size_t SplitPoints::first_above(std::int64_t bytes) const {
  const auto it = std::upper_bound(points_.begin(), points_.end(), bytes,
                                   [](std::int64_t value, const SplitPoint& point) { return value < point.before; });
  return static_cast<std::size_t>(it - points_.begin());
}

std::int64_t SplitPoints::keep_at(std::span<const Cut> cuts, MirrorCounts& counts) const {
  std::int32_t deepest = 0;
  std::int64_t kept = 0;
  for (const Cut& cut : cuts) deepest = std::max(deepest, cut.depth);
  std::vector<std::vector<std::int32_t>> positions(static_cast<std::size_t>(deepest) + 1);  // by depth
  for (const Cut& cut : cuts) positions[static_cast<std::size_t>(cut.depth)].push_back(cut.position);
  for (std::size_t depth = 0; depth < positions.size(); ++depth) {
    auto& list = positions[depth];
    std::sort(list.begin(), list.end());
    for (const Waiting& waiting : waiting_) {
      const auto it = std::lower_bound(list.begin(), list.end(), waiting.first);
      if (it == list.end() || *it > waiting.last) continue;
      auto& count = counts[waiting.task.index()];
      count = std::min(count, static_cast<std::int32_t>(depth));
      if (depth == 0) kept += waiting.bytes;
    }
  }
  return kept;
}

}  // namespace tide
