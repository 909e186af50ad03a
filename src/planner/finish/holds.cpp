#include <algorithm>
#include <limits>

#include "cost/algorithms.h"
#include "plan/alive.h"
#include "planner/draft/max_tree.h"
#include "planner/finish/finish.h"

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
    const bool run = op.is_run();
    const double seconds = run ? compute_seconds(step, cost, op.run().task, op.run().algorithm)
                               : cost.copy_seconds(step.storage(op.copy().storage).bytes, op.copy().from, op.copy().to);
    times.start.push_back(now);
    if (run) now += seconds;
    times.end.push_back(now);
    times.seconds.push_back(seconds);
  }
  return times;
}

// An op as an index: what is there at the start counts from the first one.
std::size_t clamped(std::int32_t op, std::size_t count) {
  return std::min(static_cast<std::size_t>(std::max(op, 0)), count);
}

}  // namespace

void hold_for_copies(const Step& step, const CostModel& cost, Draft& draft) {
  const Clockwork times = run_times(step, cost, draft);
  const std::size_t count = draft.ops.size();
  // By op that is a copy: the last op it may run beside (out), the first (in).
  std::vector<std::int32_t> until(count, -1), from(count, -1);
  double lane_free = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!draft.ops[i].is_copy() || draft.ops[i].lane != Lane::out) continue;
    lane_free = std::max(lane_free, times.start[i]) + times.seconds[i];
    const auto it = std::lower_bound(times.start.begin(), times.start.end(), lane_free);
    until[i] = static_cast<std::int32_t>(it - times.start.begin()) - 1;
  }
  double lane_busy = std::numeric_limits<double>::infinity();
  for (std::size_t i = count; i-- > 0;) {
    if (!draft.ops[i].is_copy() || draft.ops[i].lane != Lane::in) continue;
    lane_busy = std::min(lane_busy, times.start[i]) - times.seconds[i];
    const auto it = std::upper_bound(times.end.begin(), times.end.end(), lane_busy);
    from[i] = std::max(0, static_cast<std::int32_t>(it - times.end.begin()));
  }
  for (DraftStay& stay : draft.stays) {
    if (stay.tier != Tier::device) continue;
    const auto is_copy = [&](std::int32_t op) {
      return op >= 0 && op < static_cast<std::int32_t>(count) && draft.ops[static_cast<std::size_t>(op)].is_copy();
    };
    if (is_copy(stay.last)) stay.hold_last = std::max(stay.last, until[static_cast<std::size_t>(stay.last)]);
    if (is_copy(stay.first)) stay.hold_first = std::min(stay.first, from[static_cast<std::size_t>(stay.first)]);
  }
}

std::vector<std::int64_t> alive_on_device(const Step& step, const Draft& draft, bool held) {
  AliveSum sum(draft.ops.size());
  for (const DraftStay& stay : draft.stays)
    if (stay.tier == Tier::device)
      sum.add(held ? stay.hold_first : stay.first, held ? stay.hold_last : stay.last,
              step.storage(stay.storage).bytes.aligned().count());
  return std::move(sum).take();
}

void fit_holds(const Step& step, Bytes limit, Draft& draft) {
  const std::size_t count = draft.ops.size();
  const auto clamp = [&](std::int32_t op) { return clamped(op, count); };
  const auto size = [&](const DraftStay& stay) { return step.storage(stay.storage).bytes.aligned().count(); };
  std::vector<DraftStay*> held;
  for (DraftStay& stay : draft.stays)
    if (stay.tier == Tier::device && (stay.hold_first < stay.first || stay.hold_last > stay.last))
      held.push_back(&stay);
  std::vector<std::int64_t> alive = alive_on_device(step, draft, false);
  for (std::size_t i = 0; i < count; ++i)
    if (draft.ops[i].is_run()) alive[i] += workspace_bytes(step, draft.ops[i].run()).aligned().count();
  MaxTree live(alive);
  std::sort(held.begin(), held.end(), [](const DraftStay* a, const DraftStay* b) { return a->first < b->first; });
  for (DraftStay* const stay : held) {
    const std::int64_t room = limit.count() - size(*stay);
    const std::size_t first = live.behind_last_above(clamp(stay->hold_first), clamp(stay->first), room);
    const std::size_t last = live.first_above(clamp(stay->last + 1), clamp(stay->hold_last + 1), room);
    live.add(first, clamp(stay->first), size(*stay));
    live.add(clamp(stay->last + 1), last, size(*stay));
    if (stay->hold_first < stay->first) stay->hold_first = static_cast<std::int32_t>(first);
    stay->hold_last = std::max(stay->last, static_cast<std::int32_t>(last) - 1);
  }
}

}  // namespace tide
