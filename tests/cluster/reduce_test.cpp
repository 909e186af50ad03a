#include "cluster/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "base/bfloat16.h"
#include "cluster/calls.h"
#include "cluster/threads.h"
#include "support/error_of.h"

namespace tide {
namespace {

using Values = std::vector<float>;

// Of all magnitudes, so that another order gives other bits.
std::vector<Values> random_leaves(std::size_t leaves, std::size_t count) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  std::vector<Values> made(leaves, Values(count));
  for (Values& leaf : made)
    for (float& value : leaf) value = normal(random) * std::exp2(4 * normal(random));
  return made;
}

Values tree_sum(std::span<const Values> leaves) {
  if (leaves.size() == 1) return leaves.front();
  Values left = tree_sum(leaves.first(leaves.size() / 2));
  const Values right = tree_sum(leaves.last(leaves.size() / 2));
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

TEST(TreeAllReduce, GivesTheSameBitsOnAnyNumberOfRanks) {
  const std::vector<Values> leaves = random_leaves(8, 1001);
  const Values expected = tree_sum(leaves);
  Values in_order = leaves.front();
  for (const Values& leaf : std::span(leaves).subspan(1))
    for (std::size_t i = 0; i < leaf.size(); ++i) in_order[i] += leaf[i];
  ASSERT_FALSE(same_bits(in_order, expected));
  for (const int ranks : {1, 2, 4, 8})
    on_thread_ranks(ranks, [&](Communicator& communicator) {
      const std::size_t own = leaves.size() / static_cast<std::size_t>(ranks);
      Values values = tree_sum(std::span(leaves).subspan(own * static_cast<std::size_t>(communicator.rank()), own));
      Values scratch(values.size());
      tree_all_reduce(communicator, values, scratch);
      test::expect(same_bits(values, expected), "tree_all_reduce", communicator);
    });
}

TEST(QuickAllReduce, SumsAnyCountOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 5, 8})
    for (const std::size_t count : {0U, 1U, 2U, 7U, 8U, 1001U}) {
      on_thread_ranks(ranks, [&](Communicator& communicator) {
        Values values(count), scratch(count);
        for (std::size_t i = 0; i < count; ++i)
          values[i] = static_cast<float>(static_cast<std::size_t>(communicator.rank()) * 1000 + i);
        quick_all_reduce(communicator, values, scratch);
        Values expected(count);
        for (std::size_t i = 0; i < count; ++i)
          expected[i] = static_cast<float>(500 * ranks * (ranks - 1) + ranks * static_cast<int>(i));
        test::expect(same_bits(values, expected), "quick_all_reduce", communicator);
      });
    }
}

TEST(QuickHalves, ScatterAndGather) {
  for (const int ranks : {1, 2, 3, 4, 5, 8})
    for (const std::size_t part : {0U, 1U, 3U, 64U}) {
      const std::size_t count = part * static_cast<std::size_t>(ranks);
      on_thread_ranks(ranks, [&](Communicator& communicator) {
        const std::size_t first = part * static_cast<std::size_t>(communicator.rank());
        Values values(count), scratch(count), expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          values[i] = static_cast<float>(static_cast<std::size_t>(communicator.rank()) * 1000 + i);
          expected[i] = static_cast<float>(500 * ranks * (ranks - 1) + ranks * static_cast<int>(i));
        }
        quick_reduce_scatter(communicator, values, scratch);
        const auto own = [&](Values& of) { return Values(&of[0] + first, &of[0] + first + part); };
        test::expect(part == 0 || same_bits(own(values), own(expected)), "quick_reduce_scatter", communicator);
        quick_all_gather(communicator, std::as_writable_bytes(std::span(values)));
        test::expect(same_bits(values, expected), "quick_all_gather", communicator);
      });
    }
}

TEST(TreeAllReduce, RefusesRanksThatAreNoPowerOfTwo) {
  const std::string text = test::error_of([] {
    on_thread_ranks(6, [](Communicator& communicator) {
      Values values(3), scratch(3);
      tree_all_reduce(communicator, values, scratch);
    });
  });
  EXPECT_EQ(text, "sums that are the same on any number of ranks need 1, 2, 4, 8, ... ranks, not 6");
}

TEST(AllReduceBf16, SumsInFloatsInTheOrderOfTheRanks) {
  const auto rounded = [](float value) { return static_cast<float>(BFloat16(value)); };
  for (const int ranks : {2, 3, 5, 8})
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{10'001}}) {
      const std::vector<Values> brought = random_leaves(static_cast<std::size_t>(ranks), count);
      const std::size_t part = (count + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks);
      Values expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t rank = 0; rank < brought.size(); ++rank) {
          const float value = i / part == rank ? brought[rank][i] : rounded(brought[rank][i]);
          expected[i] = rank == 0 ? value : expected[i] + value;
        }
        expected[i] = rounded(expected[i]);
      }
      on_thread_ranks(ranks, [&](Communicator& communicator) {
        Values values = brought[static_cast<std::size_t>(communicator.rank())];
        std::vector<std::byte> scratch(bf16_scratch_bytes(count, ranks));
        all_reduce_bf16(communicator, values, scratch);
        test::expect(same_bits(values, expected), "all_reduce_bf16", communicator);
      });
    }
}

TEST(AllReduceBf16, LeavesTheValuesOfOneRankAlone) {
  on_thread_ranks(1, [](Communicator& communicator) {
    Values values{0.1F, 1e-30F, 3.0F};
    EXPECT_EQ(bf16_scratch_bytes(values.size(), 1), 0U);
    all_reduce_bf16(communicator, values, {});
    EXPECT_EQ(values, (Values{0.1F, 1e-30F, 3.0F}));
  });
}

}  // namespace
}  // namespace tide
