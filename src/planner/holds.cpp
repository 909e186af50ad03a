#include <algorithm>
#include <limits>

#include "planner/finish.h"

namespace tide {
namespace {

// Start and end of each run, and of each copy the time at which it is issued, when copies
// take no time.
struct Clockwork {
  std::vector<double> start, end, seconds;
};

Clockwork run_times(const Step& step, const CostModel& cost, const Draft& draft) {
  Clockwork times;
  double now = 0;
  for (const Op& op : draft.ops) {
    const bool run = op.kind == OpKind::run;
    const double seconds = run ? cost.task_seconds(step, op.task, op.algorithm)
                               : cost.copy_seconds(step.storage(op.storage).bytes, op.from, op.to);
    times.start.push_back(now);
    if (run) now += seconds;
    times.end.push_back(now);
    times.seconds.push_back(seconds);
  }
  return times;
}

}  // namespace

void hold_for_copies(const Step& step, const CostModel& cost, Draft& draft) {
  const Clockwork times = run_times(step, cost, draft);
  const std::size_t count = draft.ops.size();
  // By op that is a copy: the last op it may run beside (out), the first (in).
  std::vector<std::int32_t> until(count, -1), from(count, -1);
  double lane_free = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (draft.ops[i].kind != OpKind::copy || draft.ops[i].lane != Lane::out) continue;
    lane_free = std::max(lane_free, times.start[i]) + times.seconds[i];
    const auto it = std::lower_bound(times.start.begin(), times.start.end(), lane_free);
    until[i] = static_cast<std::int32_t>(it - times.start.begin()) - 1;
  }
  double lane_busy = std::numeric_limits<double>::infinity();
  for (std::size_t i = count; i-- > 0;) {
    if (draft.ops[i].kind != OpKind::copy || draft.ops[i].lane != Lane::in) continue;
    lane_busy = std::min(lane_busy, times.start[i]) - times.seconds[i];
    const auto it = std::upper_bound(times.end.begin(), times.end.end(), lane_busy);
    from[i] = std::max(0, static_cast<std::int32_t>(it - times.end.begin()));
  }
  for (DraftStay& stay : draft.stays) {
    if (stay.tier != Tier::device) continue;
    const auto is_copy = [&](std::int32_t op) {
      return op >= 0 && op < static_cast<std::int32_t>(count) && draft.ops[static_cast<std::size_t>(op)].kind == OpKind::copy;
    };
    if (is_copy(stay.last)) stay.hold_last = std::max(stay.last, until[static_cast<std::size_t>(stay.last)]);
    if (is_copy(stay.first)) stay.hold_first = std::min(stay.first, from[static_cast<std::size_t>(stay.first)]);
  }
}

}  // namespace tide
