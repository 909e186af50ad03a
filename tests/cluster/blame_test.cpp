#include "cluster/blame.h"

#include <gtest/gtest.h>

#include <vector>

namespace tide {
namespace {

constexpr bool kCollective = true;

TEST(Blame, NobodyWithinTheirLimits) {
  EXPECT_FALSE(
      find_hung_rank(std::vector<RankState>{{9, 10, 3, false}, {1e9, std::numeric_limits<double>::infinity()}}));
  EXPECT_FALSE(find_hung_rank({}));
}

TEST(Blame, TheOneThatTheOthersWaitFor) {
  const std::vector<RankState> ranks{{12, 10, 4, kCollective}, {11, 10, 4, kCollective}, {13, 10, 3, false}};
  EXPECT_EQ(find_hung_rank(ranks), 2);
}

// Rank 1 computes for as long as it was predicted to; or it plans, without a limit.
TEST(Blame, NobodyWhileTheyWaitForALongOperation) {
  for (const double limit : {300.0, std::numeric_limits<double>::infinity()}) {
    const std::vector<RankState> ranks{{50, 10, 4, kCollective}, {60, limit, 3, false}, {50, 10, 4, kCollective}};
    EXPECT_FALSE(find_hung_rank(ranks));
  }
}

TEST(Blame, TheOneThatIsBehindInCollectives) {
  const std::vector<RankState> ranks{{12, 10, 5, kCollective}, {12, 10, 4, kCollective}, {12, 10, 5, kCollective}};
  EXPECT_EQ(find_hung_rank(ranks), 1);
}

TEST(Blame, TheLowestWhereAllHangInTheSameCollective) {
  const std::vector<RankState> ranks{{8, 10, 5, kCollective}, {12, 10, 5, kCollective}, {13, 10, 5, kCollective}};
  EXPECT_EQ(find_hung_rank(ranks), 1);
}

TEST(Blame, TheOneThatHasNotLeftACollectiveWhileOthersComputeOn) {
  const std::vector<RankState> ranks{{0.1, 10, 5, false}, {12, 10, 5, kCollective}};
  EXPECT_EQ(find_hung_rank(ranks), 1);
}

TEST(Blame, NobodyWhoHasFinished) {
  const std::vector<RankState> ranks{{100, 10, 2, false, true}, {12, 10, 5, kCollective}};
  EXPECT_EQ(find_hung_rank(ranks), 1);
}

}  // namespace
}  // namespace tide
