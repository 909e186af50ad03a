#include "base/memory_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace tide {
namespace {

MemoryOrder order_of(const std::vector<std::size_t>& axes) { return MemoryOrder(axes); }

TEST(MemoryOrder, NamesEveryAxisOnce) {
  EXPECT_EQ(order_of({0, 2, 3, 1}), MemoryOrder::channels_last(4));
  EXPECT_EQ(order_of({0, 1, 2}), MemoryOrder::row_major(3));
  EXPECT_THROW(order_of({}), Error);
  EXPECT_THROW(order_of({0, 0}), Error);
  EXPECT_THROW(order_of({0, 2}), Error);
  EXPECT_THROW(order_of({0, 1, 2, 3, 4, 5, 6}), Error);
  EXPECT_THROW(static_cast<void>(MemoryOrder::row_major(0)), Error);
  EXPECT_THROW(static_cast<void>(MemoryOrder::channels_last(7)), Error);
}

TEST(MemoryOrder, ChannelsLastIsRowMajorWhereThereIsNothingBehindTheChannels) {
  EXPECT_TRUE(MemoryOrder::channels_last(1).is_row_major());
  EXPECT_TRUE(MemoryOrder::channels_last(2).is_row_major());
  EXPECT_EQ(MemoryOrder::channels_last(3), order_of({0, 2, 1}));
  EXPECT_EQ(MemoryOrder::channels_last(6), order_of({0, 2, 3, 4, 5, 1}));
  EXPECT_FALSE(MemoryOrder::channels_last(3).is_row_major());
  EXPECT_EQ(MemoryOrder(), MemoryOrder::row_major(4));
}

TEST(MemoryOrder, StridesCountElementsBetweenNeighbours) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(strides_of(shape, MemoryOrder::row_major(4)), (Strides{60, 20, 5, 1, 0, 0}));
  EXPECT_EQ(strides_of(shape, MemoryOrder::channels_last(4)), (Strides{60, 1, 15, 3, 0, 0}));
  EXPECT_EQ(strides_of({7}, MemoryOrder::row_major(1)), (Strides{1, 0, 0, 0, 0, 0}));
  EXPECT_THROW(static_cast<void>(strides_of(shape, MemoryOrder::row_major(3))), Error);
}

TEST(MemoryOrder, StridesThatOverflowAreAnError) {
  const std::int64_t large = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_THROW(static_cast<void>(strides_of({large, 3, 1}, MemoryOrder::channels_last(3))), Error);
}

// Every order of up to six axes, against the strides element by element.
TEST(MemoryOrder, EveryElementIsVisitedOnceWhereItsStridesSay) {
  const std::vector<std::int64_t> extents{2, 3, 1, 4, 2, 3};
  for (std::size_t rank = 1; rank <= Shape::kMostRank; ++rank) {
    const Shape shape(std::span<const std::int64_t>(extents).first(rank));
    const Strides logical = strides_of(shape, MemoryOrder::row_major(rank));
    std::vector<std::size_t> axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    do {
      const MemoryOrder order(axes);
      const Strides strides = strides_of(shape, order);
      std::size_t next = 0;
      std::vector<int> seen(static_cast<std::size_t>(shape.elements()), 0);
      for_each_element(shape, order, [&](std::size_t from, std::size_t to) {
        EXPECT_EQ(to, next++);
        ++seen.at(from);
        std::int64_t expected = 0;
        for (std::size_t axis = 0; axis < rank; ++axis)
          expected += static_cast<std::int64_t>(from) / logical[axis] % shape.extent(axis) * strides[axis];
        ASSERT_EQ(static_cast<std::int64_t>(to), expected);
      });
      ASSERT_EQ(next, seen.size());
      ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), shape.elements());
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
}

TEST(MemoryOrder, CopiesThereAndBack) {
  const Shape shape{1, 2, 2, 2};
  const std::vector<float> logical{0, 1, 2, 3, 10, 11, 12, 13};
  std::vector<float> memory(8), again(8);
  to_memory_order(shape, MemoryOrder::channels_last(4), logical, memory);
  EXPECT_EQ(memory, (std::vector<float>{0, 10, 1, 11, 2, 12, 3, 13}));
  to_logical_order(shape, MemoryOrder::channels_last(4), memory, again);
  EXPECT_EQ(again, logical);
  EXPECT_THROW(to_memory_order(shape, MemoryOrder::channels_last(4), std::span(logical).first(7), memory), Error);
  EXPECT_THROW(to_logical_order(shape, MemoryOrder::row_major(3), memory, again), Error);
}

}  // namespace
}  // namespace tide
