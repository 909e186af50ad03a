#include "planner/joint/forecast.h"

#include <algorithm>
#include <deque>

#include "cost/algorithms.h"
#include "plan/alive.h"
#include "planner/finish/finish.h"

namespace tide {

double forecast_seconds(const Step& step, const CostModel& cost, Bytes memory, Draft draft) {
  const std::size_t count = draft.ops.size();
  const auto bytes_of = [&](StorageId storage) { return step.storage(storage).bytes.aligned().count(); };
  const bool copies = std::any_of(draft.ops.begin(), draft.ops.end(), [](const Op& op) { return op.is_copy(); });
  if (copies) {
    for (Op& op : draft.ops)
      if (op.is_run()) op.run().algorithm = smallest_algorithm(step, op.run().task);
    hold_for_copies(step, cost, draft);
    fit_holds(step, memory, draft);
  }
  // By op: the bytes alive; the first op beside which a copy to the device may run; the copies out whose bytes may be
  // taken from there on.
  AliveSum sum(count);
  std::vector<std::int32_t> from(count);
  std::vector<std::vector<std::int32_t>> leaving(count + 1);
  for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<std::int32_t>(i);
  for (const DraftStay& stay : draft.stays) {
    const auto is_copy = [&](std::int32_t op) {
      return op >= 0 && op < static_cast<std::int32_t>(count) && draft.ops[static_cast<std::size_t>(op)].is_copy();
    };
    if (!copies || stay.tier != Tier::device) continue;
    sum.add(stay.hold_first, stay.hold_last, bytes_of(stay.storage));
    if (is_copy(stay.first)) from[static_cast<std::size_t>(stay.first)] = std::max(stay.hold_first, 0);
    if (is_copy(stay.last)) leaving[std::min(static_cast<std::size_t>(stay.hold_last) + 1, count)].push_back(stay.last);
  }
  const std::vector<std::int64_t> live = std::move(sum).take();
  PerLane<double> free(0);
  std::vector<double> end(count, 0), computed(count + 1, 0);  // by op: its end; the end of all runs before it
  std::vector<double> newest(step.storages.size(), 0),
      ready = newest;                // by storage: the end of its newest copy; to the device
  std::deque<std::int32_t> pending;  // copies out whose bytes are still there
  std::int64_t pending_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Op& op = draft.ops[i];
    double& lane = free[op.lane];
    for (const std::int32_t copy : leaving[i]) {
      pending.push_back(copy);
      pending_bytes += bytes_of(draft.ops[static_cast<std::size_t>(copy)].copy().storage);
    }
    if (op.is_run()) {
      double start = std::max(lane, op.lane == Lane::compute ? 0 : computed[i]);
      for (; !pending.empty(); pending.pop_front()) {
        const double gone = end[static_cast<std::size_t>(pending.front())];
        if (gone > start && live[i] + pending_bytes <= memory.count()) break;
        start = std::max(start, gone);
        pending_bytes -= bytes_of(draft.ops[static_cast<std::size_t>(pending.front())].copy().storage);
      }
      for (const Operand& operand : step.operands_of(op.run().task))
        if (operand.access != Access::write)
          start = std::max(start, ready[step.tensor(operand.tensor).storage.index()]);
      lane = end[i] = start + fastest_seconds(step, cost, op.run().task);
      if (op.lane != Lane::compute)
        for (const Operand& operand : step.operands_of(op.run().task))
          ready[step.tensor(operand.tensor).storage.index()] = end[i];
    } else {
      double& copied = newest[op.copy().storage.index()];
      const double start = std::max({lane, copied, computed[static_cast<std::size_t>(from[i])]});
      lane = copied = end[i] =
          start + cost.copy_seconds(step.storage(op.copy().storage).bytes, op.copy().from, op.copy().to);
      if (op.copy().to == Tier::device) ready[op.copy().storage.index()] = end[i];
    }
    computed[i + 1] = free[Lane::compute];
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace tide
