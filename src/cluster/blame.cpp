#include "cluster/blame.h"

#include <algorithm>
#include <tuple>

namespace tide {

std::optional<int> find_hung_rank(std::span<const RankState> ranks) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const RankState& rank : ranks)
    if (!rank.has_finished) fewest = std::min(fewest, rank.collectives);
  std::optional<int> blamed;
  const auto order = [&](int rank) {
    const RankState& state = ranks[static_cast<std::size_t>(rank)];
    return std::tuple(state.is_collective, state.collectives, rank);
  };
  for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
    const RankState& rank = ranks[static_cast<std::size_t>(i)];
    const bool waits = rank.is_collective && fewest < rank.collectives;
    if (rank.has_finished || waits || !(rank.stalled > rank.limit)) continue;
    if (!blamed || order(i) < order(*blamed)) blamed = i;
  }
  return blamed;
}

}  // namespace tide
