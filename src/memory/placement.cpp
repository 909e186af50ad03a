#include "memory/placement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
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

// One interval that has an address.
struct Placed {
  std::int64_t address, end;
  std::int32_t first, last;
};

// Several, by address. Column by column, so that a processor compares many times at once.
class Shelf {
 public:
  void reserve(std::size_t count) {
    addresses_.reserve(count);
    ends_.reserve(count);
    first_.reserve(count);
    last_.reserve(count);
  }

  void add(const Placed& entry) {
    const auto at = std::upper_bound(addresses_.begin(), addresses_.end(), entry.address) - addresses_.begin();
    addresses_.insert(addresses_.begin() + at, entry.address);
    ends_.insert(ends_.begin() + at, entry.end);
    first_.insert(first_.begin() + at, entry.first);
    last_.insert(last_.begin() + at, entry.last);
  }

  // The lowest gap of `size` bytes that is free for all of the interval.
  [[nodiscard]] std::int64_t lowest_gap(const Interval& interval, std::int64_t size) const {
    constexpr std::size_t kBlock = 64;
    std::array<std::uint8_t, kBlock> meets{};
    std::int64_t candidate = 0;
    for (std::size_t block = 0; block < addresses_.size(); block += kBlock) {
      const std::size_t count = std::min(kBlock, addresses_.size() - block);
      const std::int32_t *const first = first_.data() + block, *const last = last_.data() + block;
      for (std::size_t k = 0; k < count; ++k)
        meets[k] = static_cast<std::uint8_t>(static_cast<unsigned>(last[k] >= interval.first) &
                                             static_cast<unsigned>(first[k] <= interval.last));
      for (std::size_t word = 0; word < count; word += sizeof(std::uint64_t)) {
        std::uint64_t any = 0;
        std::memcpy(&any, meets.data() + word, sizeof(any));
        if (any == 0) continue;
        for (std::size_t k = word; k < std::min(word + sizeof(any), count); ++k) {
          if (meets[k] == 0) continue;
          if (addresses_[block + k] >= candidate + size) return candidate;
          candidate = std::max(candidate, ends_[block + k]);
        }
      }
      if (addresses_[block + count - 1] >= candidate + size) break;  // and so are all behind it
    }
    return candidate;
  }

 private:
  std::vector<std::int64_t> addresses_, ends_;
  std::vector<std::int32_t> first_, last_;
};

// What is placed already, by address; of many, also by windows of ops, since a short stay meets only what
// is in its own.
class Shelves {
 public:
  explicit Shelves(std::span<const Interval> intervals) {
    constexpr std::size_t kPerWindow = 128, kMostWindows = 64;
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
    return (in_one ? windows_[window(interval.first)] : all_).lowest_gap(interval, size);
  }

  void add(const Placed& entry) {
    all_.add(entry);
    if (windows_.empty()) return;
    for (std::size_t w = window(entry.first); w <= window(entry.last); ++w) windows_[w].add(entry);
  }

 private:
  [[nodiscard]] std::size_t window(std::int32_t op) const { return static_cast<std::size_t>((op - begin_) / length_); }

  std::int32_t begin_ = 0, length_ = 1;  // ops
  Shelf all_;
  std::vector<Shelf> windows_;
};

// Greedy in the given order: each interval takes the lowest gap that is free for its whole stay. Where in the order one
// would end above the limit, and the rest has no address; else the end of the order.
std::size_t place_greedy(std::span<const Interval> intervals, const Order& order, std::int64_t limit,
                         Placement& result) {
  Shelves shelves(intervals);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint32_t i = order[k];
    const std::int64_t size = size_of(intervals[i]).count();
    if (size == 0) continue;
    const std::int64_t address = shelves.lowest_gap(intervals[i], size);
    if (address + size > limit) return k;
    shelves.add({address, address + size, intervals[i].first, intervals[i].last});
    result.addresses[i] = Bytes(address);
  }
  return order.size();
}

// The lowest gap at or above `floor` among such as meet it in time, by address.
std::int64_t gap_above(std::int64_t floor, const std::vector<Placed>& near, std::int64_t size) {
  for (const Placed& other : near) {
    if (other.address >= floor + size) break;
    floor = std::max(floor, other.end);
  }
  return floor;
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
    const std::int64_t address = gap_above(floor, near, size);
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

// Squeaky wheel: whatever ended up at the top is placed earlier in the next round. `hurried`: as soon as one does not
// end below the best so far, that one is.
void improve(std::span<const Interval> intervals, Bytes enough, int rounds, bool hurried, Placement& best) {
  for (const auto method : {PlacementMethod::by_size, PlacementMethod::by_area}) {
    Order order = sorted_order(intervals, method);
    for (int round = 0; round < rounds && best.peak > enough; ++round) {
      Placement current;
      current.addresses.resize(intervals.size());
      current.lower_bound = best.lower_bound;
      const std::int64_t limit = hurried ? best.peak.count() - 1 : INT64_MAX;
      if (const std::size_t k = place_greedy(intervals, order, limit, current); k < order.size()) {
        const auto at = order.begin() + static_cast<std::ptrdiff_t>(k);
        std::rotate(order.begin() + static_cast<std::ptrdiff_t>(k / 2), at, at + 1);
        continue;
      }
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
    place_greedy(intervals, order, INT64_MAX, result);
  result.peak = peak_of(intervals, result);
  return result;
}

namespace {

Placement place_until(std::span<const Interval> intervals, Bytes enough, int rounds, bool hurried) {
  // Beyond this many stays the quadratic methods take longer than a second.
  constexpr std::size_t kQuadraticLimit = 12000;
  Placement best = place_by(intervals, PlacementMethod::layered);
  if (intervals.size() > kQuadraticLimit || (hurried && best.lower_bound > enough)) return best;
  for (const auto method : {PlacementMethod::by_size, PlacementMethod::by_area, PlacementMethod::by_length}) {
    if (best.peak <= enough || best.peak == best.lower_bound) return best;
    Placement other{std::vector<Bytes>(intervals.size()), {}, best.lower_bound};
    const Order order = sorted_order(intervals, method);
    if (place_greedy(intervals, order, best.peak.count() - 1, other) < order.size()) continue;
    other.peak = peak_of(intervals, other);
    best = std::move(other);
  }
  // Further rounds only where they are cheap and there is something to gain.
  constexpr std::size_t kImproveLimit = 1500;
  const bool worthwhile = best.peak.count() - best.lower_bound.count() > best.lower_bound.count() / 500;
  if (intervals.size() <= kImproveLimit && worthwhile)
    improve(intervals, std::max(enough, best.lower_bound), rounds, hurried, best);
  return best;
}

}  // namespace

Placement place(std::span<const Interval> intervals) {
  constexpr int kRounds = 60;
  return place_until(intervals, Bytes(), kRounds, false);
}

Placement place_within(std::span<const Interval> intervals, Bytes enough) {
  constexpr int kRounds = 2;
  return place_until(intervals, enough, kRounds, true);
}

}  // namespace tide
