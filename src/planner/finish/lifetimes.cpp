#include "planner/finish/lifetimes.h"

#include <algorithm>

namespace tide {

std::vector<Op> runs_in_order(const Step& step) {
  std::vector<Op> ops;
  ops.reserve(step.ordered_tasks);
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) ops.push_back(run_op(step, {TaskId(t)}));
  return ops;
}

std::vector<Interval> lifetimes(const Step& step) {
  const auto end = static_cast<std::int32_t>(step.ordered_tasks);
  std::vector<Interval> result;
  result.reserve(step.storages.size());
  for (const Storage& storage : step.storages) {
    if (storage.persistent)
      result.push_back({kEntry, end, storage.bytes});
    else if (storage.entry.valid())
      result.push_back({kEntry, kEntry, storage.bytes});
    else
      result.push_back({end, kEntry, storage.bytes});
  }
  for (std::int32_t t = 0; t < end; ++t) {
    for (const Operand& operand : step.operands_of(TaskId(static_cast<std::size_t>(t)))) {
      Interval& life = result[step.tensor(operand.tensor).storage.index()];
      life.first = std::min(life.first, t);
      life.last = std::max(life.last, t);
    }
  }
  return result;
}

Bytes bytes_alive(const Step& step) {
  std::vector<Interval> lives = lifetimes(step);
  std::erase_if(lives, [](const Interval& life) { return life.last < life.first; });
  return live_peak(lives).bytes;
}

}  // namespace tide
