#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

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

// Bytes alive at each op, under additions to ranges of ops: a tree of maxima.
class LiveBytes {
 public:
  explicit LiveBytes(const std::vector<std::int64_t>& live)
      : size_(std::bit_ceil(live.size() + 1)), most_(2 * size_, 0), added_(2 * size_, 0) {
    std::copy(live.begin(), live.end(), most_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t node = size_; node-- > 1;) most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
  }

  // [first, last)
  void add(std::size_t first, std::size_t last, std::int64_t bytes) {
    if (first < last) add(1, 0, size_, first, last, bytes);
  }
  // The first op of [first, last) with more than `limit` bytes; `last` where there is none.
  [[nodiscard]] std::size_t first_above(std::size_t first, std::size_t last, std::int64_t limit) const {
    return first < last ? find(1, 0, size_, first, last, limit, true).value_or(last) : last;
  }
  // Behind the last op of [first, last) with more than `limit` bytes; `first` where there is none.
  [[nodiscard]] std::size_t behind_last_above(std::size_t first, std::size_t last, std::int64_t limit) const {
    const auto found = first < last ? find(1, 0, size_, first, last, limit, false) : std::nullopt;
    return found ? *found + 1 : first;
  }

 private:
  void add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
           std::int64_t bytes) {
    if (first <= begin && end <= last) {
      most_[node] += bytes;
      added_[node] += bytes;
      return;
    }
    const std::size_t middle = (begin + end) / 2;
    if (first < middle) add(2 * node, begin, middle, first, last, bytes);
    if (last > middle) add(2 * node + 1, middle, end, first, last, bytes);
    most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node];
  }

  // The limit is that of the node's own numbers: less what was added above it.
  [[nodiscard]] std::optional<std::size_t> find(std::size_t node, std::size_t begin, std::size_t end, std::size_t first,
                                                std::size_t last, std::int64_t limit, bool from_left) const {
    if (last <= begin || end <= first || most_[node] <= limit) return std::nullopt;
    if (end - begin == 1) return begin;
    const std::size_t middle = (begin + end) / 2;
    for (const bool left : {from_left, !from_left}) {
      const auto found = left ? find(2 * node, begin, middle, first, last, limit - added_[node], from_left)
                              : find(2 * node + 1, middle, end, first, last, limit - added_[node], from_left);
      if (found) return found;
    }
    return std::nullopt;
  }

  std::size_t size_;
  std::vector<std::int64_t> most_, added_;  // by node: the most below it; what was added to all below it
};

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
      return op >= 0 && op < static_cast<std::int32_t>(count) &&
             draft.ops[static_cast<std::size_t>(op)].kind == OpKind::copy;
    };
    if (is_copy(stay.last)) stay.hold_last = std::max(stay.last, until[static_cast<std::size_t>(stay.last)]);
    if (is_copy(stay.first)) stay.hold_first = std::min(stay.first, from[static_cast<std::size_t>(stay.first)]);
  }
}

std::vector<std::int64_t> alive_on_device(const Step& step, const Draft& draft, bool held) {
  const std::size_t count = draft.ops.size();
  std::vector<std::int64_t> alive(count + 1, 0);
  for (const DraftStay& stay : draft.stays) {
    if (stay.tier != Tier::device) continue;
    const std::int64_t bytes = step.storage(stay.storage).bytes.aligned().count();
    alive[clamped(held ? stay.hold_first : stay.first, count)] += bytes;
    alive[clamped((held ? stay.hold_last : stay.last) + 1, count)] -= bytes;
  }
  for (std::size_t i = 1; i <= count; ++i) alive[i] += alive[i - 1];
  alive.pop_back();
  return alive;
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
    if (draft.ops[i].kind == OpKind::run)
      alive[i] += step.algorithms_of(draft.ops[i].task)[draft.ops[i].algorithm].workspace.aligned().count();
  LiveBytes live(alive);
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
