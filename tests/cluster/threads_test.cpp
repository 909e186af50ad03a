#include "cluster/threads.h"

#include <gtest/gtest.h>

#include <atomic>

#include "cluster/calls.h"

namespace tide {
namespace {

class ThreadRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadRanks, testing::Values(1, 2, 3, 4, 7, 64));

TEST_P(ThreadRanks, DoEveryCall) {
  on_thread_ranks(GetParam(), [](Communicator& communicator) { test::check_calls(communicator); });
}

TEST(ThreadRank, StopsWaitingWhenTheJobIsGivenUp) {
  for (const int size : {2, 3, 64})
    on_thread_ranks(size, [](Communicator& communicator) { test::check_interrupt(communicator); });
}

// Values whose sum depends on the order.
TEST(ThreadRank, SumsInTheOrderOfTheRanks) {
  const std::vector<float> values{1e8F, 3.0F, -1e8F, 1.5F, 0.1F};
  float expected = 0;
  for (const float value : values) expected += value;
  on_thread_ranks(5, [&](Communicator& communicator) {
    std::vector<float> own(11, values[static_cast<std::size_t>(communicator.rank())]);
    communicator.all_reduce(std::span(own));
    test::expect(own == std::vector<float>(11, expected), "all_reduce", communicator);
    own.assign(10, values[static_cast<std::size_t>(communicator.rank())]);
    communicator.reduce_scatter(own);
    test::expect(own[static_cast<std::size_t>(communicator.rank()) * 2] == expected, "reduce_scatter", communicator);
  });
}

// Whoever is given up must not take away what others are still reading: under a sanitizer this would show.
TEST(ThreadRank, LeavesOnlyWhenNobodyReadsItsValues) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(4);
    std::atomic<int> stopped = 0;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(500 * repeat));
      ranks[2]->interrupt();
    });
    on_ranks(ranks, [&](Communicator& communicator) {
      try {
        for (;;) {
          std::vector<float> values(50'000, 1.0F), other_values(50'000);
          communicator.all_reduce(std::span(values));
          communicator.exchange(communicator.rank() ^ 1, std::as_bytes(std::span(values)),
                                std::as_writable_bytes(std::span(other_values)));
        }
      } catch (const Error&) {
        ++stopped;
      }
    });
    other.join();
    EXPECT_EQ(stopped, 4);
    EXPECT_THROW(ranks[0]->barrier(), Error);
  }
}

TEST(ThreadRank, KnowsItsPlaceOnItsMachine) {
  const std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(5, {"a", "b", "a", "a", "b"});
  EXPECT_EQ(ranks[0]->host(4), "b");
  EXPECT_EQ(local_rank(*ranks[3]).index, 2);
  EXPECT_EQ(local_rank(*ranks[3]).count, 3);
  EXPECT_EQ(local_rank(*ranks[4]).index, 1);
  EXPECT_EQ(local_rank(*ranks[4]).count, 2);
}

}  // namespace
}  // namespace tide
