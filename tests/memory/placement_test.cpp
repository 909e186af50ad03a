#include "memory/placement.h"

#include <gtest/gtest.h>

#include <random>

namespace tide {
namespace {

std::vector<Interval> random_intervals(std::uint32_t seed, int count, int ops) {
  std::mt19937 random(seed);
  std::vector<Interval> intervals;
  for (int i = 0; i < count; ++i) {
    const auto first = static_cast<std::int32_t>(random() % static_cast<unsigned>(ops));
    const auto length =
        static_cast<std::int32_t>(random() % 7 == 0 ? random() % static_cast<unsigned>(ops) : random() % 6);
    intervals.push_back({first, std::min(first + length, ops - 1), Bytes(static_cast<std::int64_t>(random() % 5000))});
  }
  return intervals;
}

// Quadratic, and shares nothing with the methods.
void expect_disjoint(const std::vector<Interval>& intervals, const Placement& placement) {
  for (std::size_t a = 0; a < intervals.size(); ++a) {
    EXPECT_EQ(placement.addresses[a].count() % kAlignment, 0);
    EXPECT_LE(placement.addresses[a] + intervals[a].bytes.aligned(), placement.peak);
    for (std::size_t b = a + 1; b < intervals.size(); ++b) {
      if (intervals[a].last < intervals[b].first || intervals[b].last < intervals[a].first) continue;
      const bool apart = placement.addresses[a] + intervals[a].bytes.aligned() <= placement.addresses[b] ||
                         placement.addresses[b] + intervals[b].bytes.aligned() <= placement.addresses[a];
      ASSERT_TRUE(apart || intervals[a].bytes.is_zero() || intervals[b].bytes.is_zero())
          << "intervals " << a << " and " << b << " overlap";
    }
  }
}

TEST(Placement, EveryMethodKeepsStaysApart) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const std::vector<Interval> intervals = random_intervals(seed, 20 + static_cast<int>(seed) * 5, 200);
    for (const auto method :
         {PlacementMethod::by_size, PlacementMethod::by_area, PlacementMethod::by_length, PlacementMethod::layered}) {
      const Placement placement = place_by(intervals, method);
      expect_disjoint(intervals, placement);
      EXPECT_GE(placement.peak, placement.lower_bound);
    }
  }
}

TEST(Placement, TakesTheBestMethod) {
  const std::vector<Interval> intervals = random_intervals(7, 300, 200);
  const Bytes best = place(intervals).peak;
  for (const auto method :
       {PlacementMethod::by_size, PlacementMethod::by_area, PlacementMethod::by_length, PlacementMethod::layered})
    EXPECT_LE(best, place_by(intervals, method).peak);
}

TEST(Placement, NestedStaysAreExact) {
  // What forward keeps and backward frees in the opposite order.
  std::vector<Interval> intervals;
  for (int i = 0; i < 500; ++i) intervals.push_back({i, 1000 - i, Bytes(256 * (1 + i % 13))});
  const Placement placement = place_by(intervals, PlacementMethod::layered);
  EXPECT_EQ(placement.peak, placement.lower_bound);
  expect_disjoint(intervals, placement);
}

TEST(Placement, ChainsOfShortStaysDoNotClimb) {
  // Gradients that hand over to each other must alternate between two places.
  std::vector<Interval> intervals;
  for (int i = 0; i < 5000; ++i) intervals.push_back({i, i + 1, Bytes(4096)});
  EXPECT_EQ(place_by(intervals, PlacementMethod::layered).peak.count(), 8192);
  EXPECT_EQ(place(intervals).peak.count(), 8192);
}

TEST(Placement, LivePeakCountsAlignedSizes) {
  const std::vector<Interval> intervals{{0, 2, Bytes(1)}, {2, 3, Bytes(257)}, {3, 4, Bytes(256)}};
  EXPECT_EQ(live_peak(intervals).bytes.count(), 256 + 512);
  EXPECT_EQ(live_peak(intervals).op, 2);
  EXPECT_EQ(live_peak({}).bytes.count(), 0);
  EXPECT_EQ(place({}).peak.count(), 0);
}

TEST(Placement, EntryStaysBeginBeforeTheFirstOp) {
  const std::vector<Interval> intervals{{-1, 5, Bytes(256)}, {-1, -1, Bytes(256)}, {0, 3, Bytes(256)}};
  const Placement placement = place(intervals);
  expect_disjoint(intervals, placement);
  EXPECT_EQ(placement.peak.count(), 512);
}

}  // namespace
}  // namespace tide
