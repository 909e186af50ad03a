// Address placement: gives every stay in memory an address so that stays which overlap in
// time never overlap in address, with the highest address as low as it can be made
// (dynamic storage allocation, known to be NP-hard; the heuristics here come within 1% of
// the lower bound on the networks of the zoo).
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"

namespace tide {

// Alive from op `first` to op `last`, both included.
struct Interval {
  std::int32_t first = 0, last = 0;
  Bytes bytes;
};

struct Placement {
  std::vector<Bytes> addresses;  // one per interval, each a multiple of kAlignment
  Bytes peak;                    // the highest end of an interval
  Bytes lower_bound;             // the largest sum of (aligned) sizes alive at one time
};

// The largest sum of aligned sizes alive at one time, and the first op where it occurs.
struct LivePeak {
  Bytes bytes;
  std::int32_t op = 0;
};
[[nodiscard]] LivePeak live_peak(std::span<const Interval> intervals);

[[nodiscard]] Placement place(std::span<const Interval> intervals);
// The same with little effort, and none beyond the first placement that ends at `enough`.
[[nodiscard]] Placement place_within(std::span<const Interval> intervals, Bytes enough);

// The single methods, for tests and for the curious.
enum class PlacementMethod : std::uint8_t { by_size, by_area, by_length, layered };
[[nodiscard]] Placement place_by(std::span<const Interval> intervals, PlacementMethod method);

}  // namespace tide
