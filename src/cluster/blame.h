// Which of several ranks is the one that the others wait for.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace tide {

// What a rank says about itself, several times a second.
struct RankState {
  double stalled = 0;                                      // seconds without progress
  double limit = std::numeric_limits<double>::infinity();  // how many of them are too many
  std::int64_t collectives = 0;  // operations of all ranks that it has begun, the present one too
  bool is_collective = false;    // it is in one
  bool has_finished = false;     // it has left in order
};

// The rank to blame where one is over its limit. Whoever is in a collective operation that another rank has not begun
// yet merely waits, however long. Of several, one that is not in a collective comes first, then one that has begun the
// fewest.
[[nodiscard]] std::optional<int> find_hung_rank(std::span<const RankState> ranks);

}  // namespace tide
