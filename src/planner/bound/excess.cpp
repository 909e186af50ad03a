#include "planner/bound/excess.h"

#include <algorithm>
#include <limits>
#include <map>

#include "cost/algorithms.h"
#include "planner/bound/bound_values.h"

namespace tide {
namespace {

constexpr std::int64_t kSmallestValue = 4096;  // smaller ones are as if they took no room

// Calls visit(first, last) for the positions at which a value is alive and no task uses it, last excluded.
template <typename Visit>
void for_each_gap(const BoundValue& value, const Visit& visit) {
  std::int32_t before = value.made;
  for (const std::int32_t use : value.uses) {
    if (use > before + 1) visit(before + 1, use);
    before = std::max(before, use);
  }
}

// What results in place may save at most at a task.
std::int64_t saved_in_place(const Step& step, TaskId task) {
  std::int64_t saved = 0;
  const auto operands = step.operands_of(task);
  for (const InPlacePair& pair : step.in_place_of(step.task(task)))
    saved += step.storage(step.tensor(operands[static_cast<std::size_t>(pair.target)].tensor).storage)
                 .bytes.aligned()
                 .count();
  return saved;
}

}  // namespace

Excess::Excess(const Step& step, const CostModel& cost, const PlanningContext& context) {
  const StepFacts facts(step, {});
  const BoundValues all = bound_values(facts, cost, context, kSmallestValue);
  if (all.needed.empty()) return;
  std::vector<std::int64_t> change(all.needed.size() + 1, 0);
  for (const BoundValue& value : all.values) {
    if (value.rests || value.enters()) continue;  // host memory may have it from the beginning
    for_each_gap(value, [&](std::int32_t first, std::int32_t last) {
      change[static_cast<std::size_t>(first)] += value.bytes;
      change[static_cast<std::size_t>(last)] -= value.bytes;
    });
  }
  std::int64_t alive = 0, most = -1;
  for (std::size_t t = 0; t < all.needed.size(); ++t) {
    alive += change[t];
    const std::int64_t own = all.fixed + all.needed[t] - saved_in_place(step, TaskId(t));
    const auto& algorithms = step.algorithms_of(TaskId(t));
    const Bytes smallest = algorithms[smallest_algorithm(step, TaskId(t))].workspace.aligned();
    std::vector<Way>& ways = ways_.emplace_back();
    for (std::size_t a = 0; a < algorithms.size(); ++a)
      ways.push_back(
          {own + (algorithms[a].workspace.aligned() - smallest).count(), compute_seconds(step, cost, TaskId(t), a)});
    if (alive + own <= most) continue;
    most = alive + own;
    instant_ = t;
  }
  alive_ = static_cast<double>(most);
  const auto at = static_cast<std::int32_t>(instant_);
  std::map<TaskId, Droppable> replays;
  for (const BoundValue& value : all.values) {
    if (value.copy_seconds > 0)
      bytes_per_second_ = std::max(bytes_per_second_, static_cast<double>(value.bytes) / value.copy_seconds);
    if (!value.replay.valid()) continue;
    for_each_gap(value, [&](std::int32_t first, std::int32_t last) {
      if (first > at || last <= at) return;
      Droppable& droppable = replays[value.replay];
      droppable.bytes += static_cast<double>(value.bytes);
      droppable.seconds = fastest_seconds(step, cost, value.replay);
    });
  }
  for (const auto& [replay, droppable] : replays) cheapest_.push_back(droppable);
  std::sort(cheapest_.begin(), cheapest_.end(),
            [](const Droppable& a, const Droppable& b) { return a.seconds * b.bytes < b.seconds * a.bytes; });
}

bool Excess::allows(Bytes memory, double seconds, bool moves) const {
  // Each task with the fastest algorithm for whose workspace there can be room.
  double before = 0, after = 0;
  for (std::size_t t = 0; t < ways_.size(); ++t) {
    double least = std::numeric_limits<double>::infinity();
    for (const Way& way : ways_[t])
      if (way.bytes <= memory.count()) least = std::min(least, way.seconds);
    (t < instant_ ? before : after) += least;
  }
  if (seconds <= before + after) return false;
  double excess = alive_ - static_cast<double>(memory.count());
  // What leaves before the instant comes back behind it, and neither part is longer than what the other leaves of the
  // time.
  if (moves && bytes_per_second_ > 0) excess -= bytes_per_second_ * (seconds - std::max(before, after));
  double again = 0;
  for (const Droppable& droppable : cheapest_) {
    if (excess <= 0) break;
    again += droppable.seconds * std::min(1.0, excess / droppable.bytes);
    excess -= droppable.bytes;
  }
  return excess <= 0 && before + after + again < seconds;
}

}  // namespace tide
