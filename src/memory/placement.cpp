#include "memory/placement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "memory/skyline.h"

namespace tide {
namespace {

using Order = std::vector<std::uint32_t>;

Bytes size_of(const Interval& interval) { return interval.bytes.aligned(kAlignment); }

Order sorted_order(std::span<const Interval> intervals, PlacementMethod method) {
  Order order(intervals.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto length = [&](std::uint32_t i) { return std::int64_t{intervals[i].last} - intervals[i].first + 1; };
  const auto key = [&](std::uint32_t i) -> double {
    const auto bytes = static_cast<double>(intervals[i].bytes.count());
    switch (method) {
      case PlacementMethod::by_size: return bytes;
      case PlacementMethod::by_area: return bytes * static_cast<double>(length(i));
      case PlacementMethod::by_length:
      case PlacementMethod::layered: return static_cast<double>(length(i));
    }
    return 0;
  };
  std::vector<double> keys(intervals.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) keys[i] = key(i);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (keys[a] != keys[b]) return keys[a] > keys[b];
    // Among equal sizes the order of arrival is optimal (colouring of an interval graph).
    if (method == PlacementMethod::by_size) return intervals[a].first < intervals[b].first;
    return length(a) > length(b);
  });
  return order;
}

// One interval as the search loop wants it: plain numbers in a row.
struct Placed {
  std::int64_t address, end;
  std::int32_t first, last;
};

// The lowest gap of `size` bytes at or above `floor` among `placed`, which is sorted by address.
std::int64_t find_gap(const std::vector<Placed>& placed, const Interval& interval, std::int64_t size,
                      std::int64_t floor) {
  // Which of the others meet it is anyone's guess: they are picked block by block without a jump.
  constexpr std::size_t kBlock = 64;
  std::array<std::uint32_t, kBlock> meeting{};
  std::int64_t candidate = floor;
  for (std::size_t block = 0; block < placed.size(); block += kBlock) {
    std::size_t count = 0;
    const std::size_t end = std::min(block + kBlock, placed.size());
    for (std::size_t k = block; k < end; ++k) {
      meeting[count] = static_cast<std::uint32_t>(k);
      count += static_cast<std::size_t>(placed[k].last >= interval.first) &
               static_cast<std::size_t>(placed[k].first <= interval.last);
    }
    for (std::size_t k = 0; k < count; ++k) {
      const Placed& other = placed[meeting[k]];
      if (other.address >= candidate + size) return candidate;
      candidate = std::max(candidate, other.end);
    }
    if (placed[end - 1].address >= candidate + size) break;  // and so are all behind it
  }
  return candidate;
}

// What is placed already, by address; of many, also by windows of ops, since a short stay meets only what
// is in its own.
class Shelves {
 public:
  explicit Shelves(std::span<const Interval> intervals) {
    constexpr std::size_t kPerWindow = 256, kMostWindows = 64;
    std::int32_t end = 0;
    begin_ = INT32_MAX;
    for (const Interval& interval : intervals) {
      begin_ = std::min(begin_, interval.first);
      end = std::max(end, interval.last);
    }
    const std::size_t count = std::min(intervals.size() / kPerWindow, kMostWindows);
    all_.reserve(intervals.size());
    if (count < 2) return;
    length_ = (end - begin_) / static_cast<std::int32_t>(count) + 1;
    windows_.resize(count);
  }

  [[nodiscard]] std::int64_t lowest_gap(const Interval& interval, std::int64_t size) const {
    const bool in_one = !windows_.empty() && window(interval.first) == window(interval.last);
    return find_gap(in_one ? windows_[window(interval.first)] : all_, interval, size, 0);
  }

  void add(const Placed& entry) {
    insert(all_, entry);
    if (windows_.empty()) return;
    for (std::size_t w = window(entry.first); w <= window(entry.last); ++w) insert(windows_[w], entry);
  }

 private:
  [[nodiscard]] std::size_t window(std::int32_t op) const { return static_cast<std::size_t>((op - begin_) / length_); }

  static void insert(std::vector<Placed>& sorted, const Placed& entry) {
    const auto below = [](const Placed& a, const Placed& b) { return a.address < b.address; };
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), entry, below), entry);
  }

  std::int32_t begin_ = 0, length_ = 1;  // ops
  std::vector<Placed> all_;
  std::vector<std::vector<Placed>> windows_;
};

// Greedy in the given order: each interval takes the lowest gap that is free for its whole stay.
void place_greedy(std::span<const Interval> intervals, const Order& order, Placement& result) {
  Shelves shelves(intervals);
  for (const std::uint32_t i : order) {
    const std::int64_t size = size_of(intervals[i]).count();
    if (size == 0) continue;
    const std::int64_t address = shelves.lowest_gap(intervals[i], size);
    shelves.add({address, address + size, intervals[i].first, intervals[i].last});
    result.addresses[i] = Bytes(address);
  }
}

// Near linear, for steps with many thousands of stays. A training step is close to a set
// of brackets: what forward keeps is freed by backward in the opposite order.
//
//   address
//     |        [g][ ]  short stays fill the gaps above
//     |     [ y3     ]
//     |  [ y2          ]     long stays, longest first, each on the skyline of
//     | [ y1             ]   those below it: exact where they nest
//     +------------------- op
//
void place_layered(std::span<const Interval> intervals, const Order& order, Placement& result) {
  constexpr std::int32_t kShort = 48;
  std::int32_t begin = 0;
  std::int32_t end = 0;
  for (const Interval& interval : intervals) {
    begin = std::min(begin, interval.first);
    end = std::max(end, interval.last);
  }
  Skyline skyline(static_cast<std::size_t>(end - begin) + 1);
  std::vector<std::uint32_t> short_ones;
  for (const std::uint32_t i : order) {
    const Interval& interval = intervals[i];
    if (interval.last - interval.first < kShort) {
      short_ones.push_back(i);
      continue;
    }
    const auto from = static_cast<std::size_t>(interval.first - begin);
    const auto to = static_cast<std::size_t>(interval.last - begin);
    const std::int64_t address = skyline.highest(from, to);
    skyline.raise(from, to, address + size_of(interval).count());
    result.addresses[i] = Bytes(address);
  }

  // Short stays only meet others that start nearby: buckets of kShort ops find them.
  std::stable_sort(short_ones.begin(), short_ones.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return intervals[a].bytes > intervals[b].bytes; });
  std::vector<std::vector<Placed>> buckets(static_cast<std::size_t>((end - begin) / kShort) + 1);
  std::vector<Placed> near;
  for (const std::uint32_t i : short_ones) {
    const Interval& interval = intervals[i];
    const std::int64_t size = size_of(interval).count();
    if (size == 0) continue;
    const auto first_bucket = static_cast<std::size_t>((interval.first - begin) / kShort);
    const auto last_bucket = static_cast<std::size_t>((interval.last - begin) / kShort);
    near.clear();
    for (std::size_t b = first_bucket == 0 ? 0 : first_bucket - 1; b <= last_bucket; ++b)
      for (const Placed& other : buckets[b])
        if (other.last >= interval.first && other.first <= interval.last) near.push_back(other);
    std::sort(near.begin(), near.end(), [](const Placed& a, const Placed& b) { return a.address < b.address; });
    const std::int64_t floor = skyline.highest(static_cast<std::size_t>(interval.first - begin),
                                               static_cast<std::size_t>(interval.last - begin));
    const std::int64_t address = find_gap(near, interval, size, floor);
    buckets[first_bucket].push_back({address, address + size, interval.first, interval.last});
    result.addresses[i] = Bytes(address);
  }
}

Bytes peak_of(std::span<const Interval> intervals, const Placement& placement) {
  Bytes peak;
  for (std::size_t i = 0; i < intervals.size(); ++i)
    peak = std::max(peak, placement.addresses[i] + size_of(intervals[i]));
  return peak;
}

// Squeaky wheel: whatever ended up at the top is placed earlier in the next round.
void improve(std::span<const Interval> intervals, Bytes enough, int rounds, Placement& best) {
  for (const auto method : {PlacementMethod::by_size, PlacementMethod::by_area}) {
    Order order = sorted_order(intervals, method);
    for (int round = 0; round < rounds && best.peak > enough; ++round) {
      Placement current;
      current.addresses.resize(intervals.size());
      current.lower_bound = best.lower_bound;
      place_greedy(intervals, order, current);
      current.peak = peak_of(intervals, current);
      for (std::size_t k = 1; k < order.size(); ++k) {
        if (current.addresses[order[k]] + size_of(intervals[order[k]]) != current.peak) continue;
        const auto at = order.begin() + static_cast<std::ptrdiff_t>(k);
        std::rotate(order.begin() + static_cast<std::ptrdiff_t>(k / 2), at, at + 1);
      }
      if (current.peak < best.peak) best = std::move(current);
    }
  }
}

}  // namespace

LivePeak live_peak(std::span<const Interval> intervals) {
  if (intervals.empty()) return {};
  std::int32_t begin = intervals[0].first;
  std::int32_t end = intervals[0].last;
  for (const Interval& interval : intervals) {
    begin = std::min(begin, interval.first);
    end = std::max(end, interval.last);
  }
  std::vector<std::int64_t> change(static_cast<std::size_t>(end - begin) + 2, 0);
  for (const Interval& interval : intervals) {
    const std::int64_t size = size_of(interval).count();
    auto& at_first = change[static_cast<std::size_t>(interval.first - begin)];
    at_first = checked_add(at_first, size);
    change[static_cast<std::size_t>(interval.last - begin) + 1] -= size;
  }
  LivePeak peak;
  std::int64_t live = 0;
  for (std::size_t op = 0; op < change.size(); ++op) {
    live = checked_add(live, change[op]);
    if (live > peak.bytes.count()) peak = {Bytes(live), static_cast<std::int32_t>(op) + begin};
  }
  return peak;
}

Placement place_by(std::span<const Interval> intervals, PlacementMethod method) {
  Placement result;
  result.addresses.resize(intervals.size());
  result.lower_bound = live_peak(intervals).bytes;
  const Order order = sorted_order(intervals, method);
  if (method == PlacementMethod::layered)
    place_layered(intervals, order, result);
  else
    place_greedy(intervals, order, result);
  result.peak = peak_of(intervals, result);
  return result;
}

namespace {

Placement place_until(std::span<const Interval> intervals, Bytes enough, int rounds) {
  // Beyond this many stays the quadratic methods take longer than a second.
  constexpr std::size_t kQuadraticLimit = 12000;
  Placement best = place_by(intervals, PlacementMethod::layered);
  if (intervals.size() > kQuadraticLimit) return best;
  for (const auto method : {PlacementMethod::by_size, PlacementMethod::by_area, PlacementMethod::by_length}) {
    if (best.peak <= enough || best.peak == best.lower_bound) return best;
    Placement other = place_by(intervals, method);
    if (other.peak < best.peak) best = std::move(other);
  }
  // Further rounds only where they are cheap and there is something to gain.
  constexpr std::size_t kImproveLimit = 1500;
  const bool worthwhile = best.peak.count() - best.lower_bound.count() > best.lower_bound.count() / 500;
  if (intervals.size() <= kImproveLimit && worthwhile)
    improve(intervals, std::max(enough, best.lower_bound), rounds, best);
  return best;
}

}  // namespace

Placement place(std::span<const Interval> intervals) {
  constexpr int kRounds = 60;
  return place_until(intervals, Bytes(), kRounds);
}

Placement place_within(std::span<const Interval> intervals, Bytes enough) {
  constexpr int kRounds = 4;
  return place_until(intervals, enough, kRounds);
}

}  // namespace tide
