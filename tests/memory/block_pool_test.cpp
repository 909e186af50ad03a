// The pool against a model that knows only which blocks are taken.
#include "memory/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tide {
namespace {

using End = BlockPool::End;

// A flag per block; finds places by trying every one.
class TakenBlocks {
 public:
  TakenBlocks(std::int64_t blocks, std::int64_t block)
      : taken_(static_cast<std::size_t>(blocks), false), block_(block) {}

  [[nodiscard]] bool fits(std::int64_t first, std::int64_t count) const {
    if (first < 0 || first + count > size()) return false;
    for (std::int64_t i = first; i < first + count; ++i)
      if (taken_[static_cast<std::size_t>(i)]) return false;
    return true;
  }
  // In blocks; -1 where there is no place.
  [[nodiscard]] std::int64_t find(std::int64_t count, End end) const {
    for (std::int64_t i = 0; i + count <= size(); ++i) {
      const std::int64_t first = end == End::low ? i : size() - count - i;
      if (fits(first, count)) return first;
    }
    return -1;
  }
  void set(std::int64_t first, std::int64_t count, bool value) {
    std::fill_n(taken_.begin() + first, count, value);
    if (value) high_water_ = std::max(high_water_, first + count);
  }
  [[nodiscard]] std::map<std::int64_t, std::int64_t> holes() const {
    std::map<std::int64_t, std::int64_t> result;
    for (std::int64_t i = 0; i < size(); ++i) {
      if (taken_[static_cast<std::size_t>(i)]) continue;
      const std::int64_t first = i;
      while (i < size() && !taken_[static_cast<std::size_t>(i)]) ++i;
      result.emplace(first * block_, (i - first) * block_);
    }
    return result;
  }
  [[nodiscard]] std::int64_t high_water() const { return high_water_ * block_; }
  [[nodiscard]] std::int64_t used() const { return std::count(taken_.begin(), taken_.end(), true) * block_; }

 private:
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(taken_.size()); }
  std::vector<bool> taken_;
  std::int64_t block_, high_water_ = 0;
};

struct PoolCase {
  std::uint32_t seed;
  std::int64_t blocks, block, largest;  // request, in blocks
};

class BlockPoolSequences : public testing::TestWithParam<PoolCase> {};

TEST_P(BlockPoolSequences, EveryStepIsAsTheModelSays) {
  const auto [seed, blocks, block, largest] = GetParam();
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  BlockPool pool(Bytes(blocks * block), Bytes(block));
  TakenBlocks model(blocks, block);
  std::vector<BlockPool::Node> nodes;
  std::int64_t refused = 0;
  for (int step = 0; step < 3000; ++step) {
    // Phases of growth and of shrinking, so that the pool is nearly full and nearly empty.
    const bool growing = step / 300 % 2 == 0;
    if (nodes.empty() || below(10) < (growing ? 7 : 3)) {
      const std::int64_t count = 1 + below(largest);
      const Bytes request((count - 1) * block + 1 + below(block));  // needs `count` blocks
      const int way = static_cast<int>(below(3));
      const End end = way == 1 ? End::high : End::low;
      std::int64_t expected = 0;
      std::optional<BlockPool::Node> node;
      if (way == 2) {
        const std::int64_t at = below(blocks);
        expected = model.fits(at, count) ? at : -1;
        node = pool.allocate_at(Bytes(at * block), request);
      } else {
        expected = model.find(count, end);
        node = pool.allocate(request, end);
      }
      ASSERT_EQ(node.has_value(), expected >= 0) << "step " << step;
      if (!node) {
        ++refused;
        continue;
      }
      EXPECT_EQ(node->address.count(), expected * block) << "step " << step;
      EXPECT_EQ(node->bytes.count(), count * block);
      for (const BlockPool::Node& other : nodes) ASSERT_NE(other.id, node->id) << "an id in use was given again";
      model.set(expected, count, true);
      nodes.push_back(*node);
    } else {
      const auto at = static_cast<std::size_t>(below(static_cast<std::int64_t>(nodes.size())));
      const BlockPool::Node node = nodes[at];
      pool.release(node.id);
      model.set(node.address.count() / block, node.bytes.count() / block, false);
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(at));
      ASSERT_THROW(pool.release(node.id), Error) << "released twice";
    }
    ASSERT_EQ(pool.holes(), model.holes()) << "step " << step;
    ASSERT_EQ(pool.used().count(), model.used());
    ASSERT_EQ(pool.free().count(), blocks * block - model.used());
    ASSERT_EQ(pool.high_water().count(), model.high_water());
    std::int64_t hole = 0;
    for (const auto& [address, bytes] : model.holes()) hole = std::max(hole, bytes);
    ASSERT_EQ(pool.largest_hole().count(), hole);
  }
  EXPECT_GT(refused, 0) << "the pool was never full: the sequence tests too little";

  std::shuffle(nodes.begin(), nodes.end(), random);
  for (const BlockPool::Node& node : nodes) pool.release(node.id);
  EXPECT_TRUE(pool.used().is_zero());
  const std::map<std::int64_t, std::int64_t> whole{{0, blocks * block}};
  EXPECT_EQ(pool.holes(), whole);
}

INSTANTIATE_TEST_SUITE_P(Random, BlockPoolSequences,
                         testing::Values(PoolCase{1, 40, 1024, 4}, PoolCase{2, 40, 1024, 30}, PoolCase{3, 200, 256, 12},
                                         PoolCase{4, 500, 1024, 60}, PoolCase{5, 7, 512, 3}, PoolCase{6, 1, 1024, 2}),
                         [](const auto& row) { return "seed" + std::to_string(row.param.seed); });

TEST(BlockPool, CapacityIsWholeBlocks) {
  EXPECT_EQ(BlockPool(Bytes(10'000)).capacity().count(), 9 * 1024);
  BlockPool tiny(Bytes(1023));
  EXPECT_TRUE(tiny.capacity().is_zero());
  EXPECT_TRUE(tiny.holes().empty());
  EXPECT_FALSE(tiny.allocate(Bytes(1)));
  EXPECT_TRUE(tiny.largest_hole().is_zero());
}

TEST(BlockPool, BlocksAreMultiplesOfTheAlignment) {
  EXPECT_THROW(BlockPool(Bytes(4096), Bytes(0)), Error);
  EXPECT_THROW(BlockPool(Bytes(4096), Bytes(1000)), Error);
  EXPECT_NO_THROW(BlockPool(Bytes(4096), Bytes(kAlignment)));
}

TEST(BlockPool, IdsAreUsedAgain) {
  BlockPool pool(Bytes(1 << 20));
  std::set<BlockPool::NodeId> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto a = pool.allocate(Bytes(5000)), b = pool.allocate(Bytes(100), End::high);
    ASSERT_TRUE(a && b);
    ids.insert({a->id, b->id});
    pool.release(a->id);
    pool.release(b->id);
  }
  EXPECT_EQ(ids.size(), 2U) << "the table of nodes grows with every request";
}

TEST(BlockPool, BothEndsMeet) {
  BlockPool pool(Bytes(8 * 1024));
  EXPECT_EQ(pool.allocate(Bytes(3 * 1024))->address.count(), 0);
  EXPECT_EQ(pool.allocate(Bytes(3 * 1024), End::high)->address.count(), 5 * 1024);
  EXPECT_FALSE(pool.allocate(Bytes(2 * 1024 + 1)));
  EXPECT_EQ(pool.allocate(Bytes(2 * 1024), End::high)->address.count(), 3 * 1024);
  EXPECT_TRUE(pool.free().is_zero());
  EXPECT_TRUE(pool.holes().empty());
}

TEST(BlockPool, ReleaseOfWhatWasNeverAllocatedThrows) {
  BlockPool pool(Bytes(8 * 1024));
  EXPECT_THROW(pool.release(0), Error);
  const auto node = pool.allocate(Bytes(1));
  EXPECT_THROW(pool.release(node->id + 1), Error);
  EXPECT_NO_THROW(pool.release(node->id));
}

TEST(BlockPool, AllocateAtTakesThatPlaceOrNone) {
  BlockPool pool(Bytes(8 * 1024));
  const auto middle = pool.allocate_at(Bytes(3 * 1024), Bytes(2 * 1024));
  ASSERT_TRUE(middle);
  EXPECT_FALSE(pool.allocate_at(Bytes(4 * 1024), Bytes(1)));
  EXPECT_FALSE(pool.allocate_at(Bytes(2 * 1024), Bytes(1025)));
  EXPECT_FALSE(pool.allocate_at(Bytes(7 * 1024), Bytes(1025))) << "beyond the end";
  EXPECT_FALSE(pool.allocate_at(Bytes(800 * 1024), Bytes(1)));
  EXPECT_TRUE(pool.allocate_at(Bytes(2 * 1024), Bytes(1024)));
  EXPECT_EQ(pool.holes().size(), 2U);
}

}  // namespace
}  // namespace tide
