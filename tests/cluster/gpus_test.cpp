#include "cluster/gpus.h"

#include <gtest/gtest.h>

#include "cluster/threads.h"

namespace tide {
namespace {

using Lists = std::vector<std::string>;

TEST(Gpus, AreTakenInTurn) {
  const Lists all(3, "0,1,2");
  EXPECT_EQ(own_gpu_first(all, 0), "0,1,2");
  EXPECT_EQ(own_gpu_first(all, 1), "1,2,0");
  EXPECT_EQ(own_gpu_first(all, 2), "2,0,1");
  const Lists few(3, "GPU-a,GPU-b");
  EXPECT_EQ(own_gpu_first(few, 2), "GPU-a,GPU-b");
}

TEST(Gpus, OfALauncherThatGivesThemAreNotContradicted) {
  const Lists given{"3", "1", "0"};
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(own_gpu_first(given, rank), given[static_cast<std::size_t>(rank)]);
  // Each sees its own as the only one there is.
  const Lists hidden{"0", "0"};
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(own_gpu_first(hidden, rank), "0");
  const Lists pairs{"0,1", "2,3", "0,1", "2,3"};
  EXPECT_EQ(own_gpu_first(pairs, 1), "2,3");
  EXPECT_EQ(own_gpu_first(pairs, 2), "1,0");
  EXPECT_EQ(own_gpu_first(pairs, 3), "3,2");
}

TEST(Gpus, NoneAreNone) {
  const Lists none{"", "0", ""};
  EXPECT_EQ(own_gpu_first(none, 0), "");
  EXPECT_EQ(own_gpu_first(none, 1), "0");
}

TEST(Gpus, OfOneMachineAreThoseOfItsRanks) {
  const std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(4, {"a", "b", "a", "b"});
  const Lists by_rank{"0", "1", "2", "3"};
  EXPECT_EQ(of_this_host(*ranks[0], by_rank), (Lists{"0", "2"}));
  EXPECT_EQ(of_this_host(*ranks[3], by_rank), (Lists{"1", "3"}));
}

}  // namespace
}  // namespace tide
