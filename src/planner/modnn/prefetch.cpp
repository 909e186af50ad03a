// Ahead of need: the nearest tasks whose data are away get them back while others run.
#include <algorithm>
#include <utility>

#include "planner/modnn/schedule.h"

namespace tide {

// `end`: of the task at hand. Beside it copies may start.
void ModnnSchedule::prefetch(double end) {
  std::vector<StorageId> coming;
  while (!away_.empty()) {
    const std::int32_t target = away_.begin()->first;
    coming.clear();
    double seconds = 0;
    for (auto it = away_.begin(); it != away_.end() && it->first == target; ++it) {
      coming.push_back(it->second);
      seconds += copy_seconds(it->second);
    }
    // Equation 4. Where the lane is busy until then anyway, nothing is lost by waiting.
    const double expected = end + until(target) - until(position_ + 1);
    if (free(Lane::in) >= end || end + guess_.lead * seconds <= expected) return;
    if (!is_useful(target)) return;
    for (const StorageId id : coming) {
      if (!allocate(id, Leaving::judiciously, target, end)) return;
      copy_in(id);
    }
  }
}

// Guesses the memory of the tasks up to `target` by bytes: whether what they make, what they read and
// what cannot leave will fit at once, so that nothing that comes now has to leave again.
bool ModnnSchedule::is_useful(std::int32_t target) {
  std::int64_t held = 0;
  for (const MemoryList::Segment& segment : memory_.segments())
    if (segment.block.valid() && segment.block != workspace_ && !may_leave(segment.block, Leaving::judiciously, target))
      held += segment.bytes;
  ++guesses_;
  const auto meet = [&](StorageId id) {
    if (fixed(id) || memory_.has(id) || std::exchange(met_[id.index()], guesses_) == guesses_) return;
    held += size(id).count();
  };
  // What comes is there from now on.
  for (auto it = away_.begin(); it != away_.end() && it->first == target; ++it) meet(it->second);
  for (std::int32_t position = position_; position <= target; ++position) {
    const TaskId task(static_cast<std::size_t>(position));
    const auto operands = step_.operands_of(task);
    for (const Operand& operand : operands) meet(storage(operand.tensor));
    const Bytes workspace = step_.algorithms_of(task)[smallest_algorithm(step_, task)].workspace.aligned();
    if (position > position_ && held + workspace.count() > capacity_.count()) return false;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const StorageId id = storage(operands[k].tensor);
      if (fixed(id)) continue;
      // Each storage once, and only where no other value in it lives on.
      bool last = true;
      for (std::size_t other = 0; other < operands.size(); ++other)
        if (storage(operands[other].tensor) == id && (other < k || facts_.last_use(operands[other].tensor) > position))
          last = false;
      if (last) held -= size(id).count();
    }
  }
  return true;
}

}  // namespace tide
