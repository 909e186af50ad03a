#include "memory/tensor_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"

namespace tide {
namespace {

using Keys = std::vector<TensorCache::Key>;

TensorCache filled(Replacement replacement, std::initializer_list<std::int64_t> sizes, std::int64_t capacity) {
  TensorCache cache(Bytes(capacity), replacement, 16);
  std::int64_t address = 0;
  TensorCache::Key key = 0;
  for (const std::int64_t size : sizes) {
    cache.insert(key++, Bytes(address), Bytes(size));
    address += size;
  }
  return cache;
}

TEST(TensorCache, EvictsTheLeastRecentlyUsed) {
  TensorCache cache = filled(Replacement::lru, {10, 10, 10}, 30);
  EXPECT_EQ(cache.victims(Bytes(10))->keys, (Keys{0}));
  cache.touch(0);  // a hit moves to the front
  EXPECT_EQ(cache.victims(Bytes(10))->keys, (Keys{1}));
  cache.touch(1);
  EXPECT_EQ(cache.victims(Bytes(10))->keys, (Keys{2}));
}

TEST(TensorCache, RulesDiffer) {
  TensorCache fifo = filled(Replacement::fifo, {10, 10, 10}, 30);
  fifo.touch(0);  // does not matter
  EXPECT_EQ(fifo.victims(Bytes(10))->keys, (Keys{0}));
  TensorCache largest = filled(Replacement::largest, {10, 30, 20}, 60);
  EXPECT_EQ(largest.victims(Bytes(10))->keys, (Keys{1}));
  TensorCache next = filled(Replacement::next_use, {10, 10, 10}, 30);
  next.set_next_use(0, 5);
  next.set_next_use(1, 9);
  next.set_next_use(2, 7);
  EXPECT_EQ(next.victims(Bytes(10))->keys, (Keys{1}));
}

TEST(TensorCache, LockedTensorsStay) {
  TensorCache cache = filled(Replacement::lru, {10, 10, 10}, 30);
  cache.lock(0);
  EXPECT_EQ(cache.victims(Bytes(10))->keys, (Keys{1}));
  cache.lock(1);
  EXPECT_FALSE(cache.victims(Bytes(20)));  // only one tensor is left
  cache.unlock(1);
  EXPECT_EQ(cache.victims(Bytes(20))->keys, (Keys{1, 2}));
  cache.unlock(0);
  EXPECT_THROW(cache.unlock(0), Error);
}

TEST(TensorCache, VictimsLieSideBySideWithTheHolesBetween) {
  TensorCache cache = filled(Replacement::lru, {10, 10, 10, 10}, 50);
  cache.erase(1);  // a hole at 10..20, and one at 40..50
  const auto victims = cache.victims(Bytes(20));
  ASSERT_TRUE(victims);
  EXPECT_EQ(victims->keys, (Keys{0}));  // the oldest, with the hole behind it
  EXPECT_EQ(victims->address, Bytes(0));
  EXPECT_TRUE(cache.victims(Bytes(10))->keys.empty());
  EXPECT_FALSE(cache.victims(Bytes(51)));
}

TEST(TensorCache, RefusesOverlapsAndStrangers) {
  TensorCache cache = filled(Replacement::lru, {10, 10}, 30);
  EXPECT_THROW(cache.insert(0, Bytes(20), Bytes(10)), Error);
  EXPECT_THROW(cache.insert(5, Bytes(15), Bytes(10)), Error);
  EXPECT_THROW(cache.insert(5, Bytes(25), Bytes(10)), Error);
  EXPECT_THROW(cache.erase(7), Error);
}

// Against all runs of neighbours, tried one by one.
TEST(TensorCache, TheRunIsTheBestOfAll) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    constexpr std::int64_t kCapacity = 120;
    TensorCache cache(Bytes(kCapacity), Replacement::next_use, 32);
    struct Item {
      TensorCache::Key key;
      std::int64_t begin, end, rank;
      bool locked;
    };
    std::vector<Item> items;
    std::int64_t at = static_cast<std::int64_t>(random() % 8);
    for (TensorCache::Key key = 0; key < 12; ++key) {
      const std::int64_t size = 1 + static_cast<std::int64_t>(random() % 12);
      if (at + size > kCapacity) break;
      const auto rank = static_cast<std::int64_t>(random() % 6);
      const bool locked = random() % 5 == 0;
      cache.insert(key, Bytes(at), Bytes(size));
      cache.set_next_use(key, rank);
      if (locked) cache.lock(key);
      items.push_back({key, at, at + size, rank, locked});
      at += size + static_cast<std::int64_t>(random() % 4);
    }
    const std::int64_t wanted = 1 + static_cast<std::int64_t>(random() % 60);
    // The best of the worst ranks over all runs that give enough room.
    bool possible = false;
    std::int64_t best = -1;
    for (std::size_t left = 0; left <= items.size(); ++left) {
      for (std::size_t right = left; right <= items.size(); ++right) {
        const std::int64_t begin = left == 0 ? 0 : items[left - 1].end;
        const std::int64_t end = right == items.size() ? kCapacity : items[right].begin;
        std::int64_t rank = INT64_MAX;
        bool free = true;
        for (std::size_t k = left; k < right; ++k) {
          rank = std::min(rank, items[k].rank);
          free = free && !items[k].locked;
        }
        if (!free || end - begin < wanted) continue;
        possible = true;
        best = std::max(best, rank);
      }
    }
    const auto victims = cache.victims(Bytes(wanted));
    ASSERT_EQ(victims.has_value(), possible) << seed;
    if (!victims) continue;
    std::int64_t rank = INT64_MAX;
    for (const TensorCache::Key key : victims->keys) {
      EXPECT_FALSE(items[key].locked) << seed;
      rank = std::min(rank, items[key].rank);
    }
    EXPECT_EQ(rank, best) << seed;
  }
}

}  // namespace
}  // namespace tide
