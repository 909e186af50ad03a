#include "planner/forecast.h"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

#include "planner/finish.h"
#include "planner/layout.h"

namespace tide {

double forecast_seconds(const Step& step, const CostModel& cost, Bytes memory, Draft draft) {
  const std::size_t count = draft.ops.size();
  const auto bytes_of = [&](StorageId storage) { return step.storage(storage).bytes.aligned().count(); };
  const bool copies =
      std::any_of(draft.ops.begin(), draft.ops.end(), [](const Op& op) { return op.kind == OpKind::copy; });
  if (copies) {
    for (Op& op : draft.ops)
      if (op.kind == OpKind::run) op.algorithm = smallest_algorithm(step, op.task);
    hold_for_copies(step, cost, draft);
    fit_holds(step, memory, draft);
  }
  // By op: the bytes alive; the first op beside which a copy to the device may run; the copies out whose bytes may be
  // taken from there on.
  std::vector<std::int64_t> live(count + 1, 0);
  std::vector<std::int32_t> from(count);
  std::vector<std::vector<std::int32_t>> leaving(count + 1);
  for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<std::int32_t>(i);
  for (const DraftStay& stay : draft.stays) {
    const auto is_copy = [&](std::int32_t op) {
      return op >= 0 && op < static_cast<std::int32_t>(count) &&
             draft.ops[static_cast<std::size_t>(op)].kind == OpKind::copy;
    };
    if (!copies || stay.tier != Tier::device) continue;
    live[static_cast<std::size_t>(std::max(stay.hold_first, 0))] += bytes_of(stay.storage);
    live[std::min(static_cast<std::size_t>(stay.hold_last) + 1, count)] -= bytes_of(stay.storage);
    if (is_copy(stay.first)) from[static_cast<std::size_t>(stay.first)] = std::max(stay.hold_first, 0);
    if (is_copy(stay.last)) leaving[std::min(static_cast<std::size_t>(stay.hold_last) + 1, count)].push_back(stay.last);
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  std::array<double, kLanes> free{};
  std::vector<double> end(count, 0), computed(count + 1, 0);  // by op: its end; the end of all runs before it
  std::vector<double> newest(step.storages.size(), 0),
      ready = newest;                // by storage: the end of its newest copy; to the device
  std::deque<std::int32_t> pending;  // copies out whose bytes are still there
  std::int64_t pending_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Op& op = draft.ops[i];
    double& lane = free[static_cast<std::size_t>(op.lane)];
    for (const std::int32_t copy : leaving[i]) {
      pending.push_back(copy);
      pending_bytes += bytes_of(draft.ops[static_cast<std::size_t>(copy)].storage);
    }
    if (op.kind == OpKind::run) {
      double start = lane;
      for (; !pending.empty(); pending.pop_front()) {
        const double gone = end[static_cast<std::size_t>(pending.front())];
        if (gone > start && live[i] + pending_bytes <= memory.count()) break;
        start = std::max(start, gone);
        pending_bytes -= bytes_of(draft.ops[static_cast<std::size_t>(pending.front())].storage);
      }
      for (const Operand& operand : step.operands_of(op.task))
        if (operand.access != Access::write)
          start = std::max(start, ready[step.tensor(operand.tensor).storage.index()]);
      lane = end[i] = start + cost.task_seconds(step, op.task, fastest_algorithm(step, cost, op.task));
    } else {
      double& copied = newest[op.storage.index()];
      const double start = std::max({lane, copied, computed[static_cast<std::size_t>(from[i])]});
      lane = copied = end[i] = start + cost.copy_seconds(step.storage(op.storage).bytes, op.from, op.to);
      if (op.to == Tier::device) ready[op.storage.index()] = end[i];
    }
    computed[i + 1] = free[static_cast<std::size_t>(Lane::compute)];
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace tide
