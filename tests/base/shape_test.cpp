#include "base/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tide {
namespace {

TEST(Shape, HasOneToSixExtents) {
  for (std::size_t rank = 1; rank <= Shape::kMostRank; ++rank) {
    std::vector<std::int64_t> extents;
    for (std::size_t axis = 0; axis < rank; ++axis) extents.push_back(static_cast<std::int64_t>(axis) + 2);
    const Shape shape{std::span<const std::int64_t>(extents)};
    EXPECT_EQ(shape.rank(), rank);
    EXPECT_TRUE(std::equal(shape.extents().begin(), shape.extents().end(), extents.begin(), extents.end()));
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      EXPECT_EQ(shape.extent(axis), extents[axis]);
      elements *= extents[axis];
    }
    EXPECT_EQ(shape.elements(), elements);
    EXPECT_EQ(shape.per_sample(), elements / 2);
    EXPECT_THROW(static_cast<void>(shape.extent(rank)), Error);
    EXPECT_THROW(static_cast<void>(shape.with_extent(rank, 1)), Error);
  }
}

TEST(Shape, OfNoExtentOrTooManyIsRefused) {
  EXPECT_THROW(Shape(std::span<const std::int64_t>()), Error);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6, 7}), Error);
}

TEST(Shape, IsRankFourOfOnesUnlessSaid) { EXPECT_EQ(Shape(), (Shape{1, 1, 1, 1})); }

TEST(Shape, OfAnotherRankIsAnotherShape) {
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1, 1}));
  EXPECT_NE((Shape{1}), (Shape{1, 1}));
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 7}.with_extent(1, 3)));
  EXPECT_LT((Shape{2, 3, 4, 5}), (Shape{2, 3, 5, 4}));
  EXPECT_LT((Shape{9, 9}), (Shape{1, 1, 1}));
}

TEST(Shape, ChangesOneExtentAtATime) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(shape.with_batch(7), (Shape{7, 3, 4, 5}));
  EXPECT_EQ(shape.with_extent(3, 1), (Shape{2, 3, 4, 1}));
  EXPECT_EQ((Shape{3}.with_batch(9)), Shape{9});
}

TEST(Shape, AnImageNamesItsExtents) {
  const Shape image{2, 3, 4, 5}, row{2, 3}, vector{6}, tokens{2, 7, 8};
  EXPECT_EQ(image.batch(), 2);
  EXPECT_EQ(image.channels(), 3);
  EXPECT_EQ(image.height(), 4);
  EXPECT_EQ(image.width(), 5);
  EXPECT_EQ(row.channels(), 3);
  EXPECT_EQ(row.height() * row.width(), 1);
  EXPECT_EQ(vector.batch(), 6);
  EXPECT_EQ(vector.channels() * vector.height() * vector.width(), 1);
  EXPECT_EQ(tokens.height() * tokens.width(), 1);
}

TEST(Shape, PositionsAreWhatIsBehindTheChannels) {
  EXPECT_EQ((Shape{2, 3, 4, 5}.positions()), 20);
  EXPECT_EQ((Shape{2, 3, 4}.positions()), 4);
  EXPECT_EQ((Shape{2, 3, 4, 5, 6, 7}.positions()), 840);
  EXPECT_EQ((Shape{2, 3}.positions()), 1);
  EXPECT_EQ(Shape{9}.positions(), 1);
}

TEST(Shape, TooManyElementsAreAnErrorAtEveryRank) {
  const std::int64_t large = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_EQ((Shape{large, 2}.elements()), large * 2);
  EXPECT_THROW(static_cast<void>(Shape({large, 3}).elements()), Error);
  EXPECT_THROW(static_cast<void>(Shape({1, 1, 1, 1, large, 3}).elements()), Error);
  EXPECT_THROW(static_cast<void>(Shape({1, 1, 1, 1, large, 3}).per_sample()), Error);
  EXPECT_THROW(static_cast<void>(bytes_of({large}, DataType::f32)), Error);
}

TEST(Shape, ASampleIsWrittenWithoutItsBatch) {
  EXPECT_EQ(sample_text({8, 64, 56, 56}), "64x56x56");
  EXPECT_EQ(sample_text({8, 24}), "24");
  EXPECT_EQ(sample_text({8, 1, 2, 3, 4, 5}), "1x2x3x4x5");
}

}  // namespace
}  // namespace tide
