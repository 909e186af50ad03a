// Sums over all ranks whose rounding is known, from a communicator's calls alone.
#pragma once

#include <cstddef>
#include <span>

#include "cluster/communicator.h"

namespace tide {

// One binary tree over the ranks: at level k a rank adds what rank ^ (1 << k) has.
//
//   rank   0   1   2   3
//   k = 0  0+1     2+3         Ranks that each hold the tree's sum of their own leaves get what one rank with all
//   k = 1  (0+1) + (2+3)       leaves would get, bit by bit.
//
// Throws an Error where the number of ranks is not a power of two. REQUIRES: scratch is as large as values.
void tree_all_reduce(Communicator& communicator, std::span<float> values, std::span<float> scratch);

// The same sum where all that counts is time: halves are summed by halves of the ranks, and handed out likewise, so
// that each value goes over the wire twice at most. In whatever order the library likes where the number of ranks is
// not a power of two. All ranks get the same bits. REQUIRES: scratch is as large as values.
void quick_all_reduce(Communicator& communicator, std::span<float> values, std::span<float> scratch);

// Halves of that by themselves: of `size()` equal parts, part `rank()` is summed, the others are anything; and parts of
// all ranks, of which each brings its own. REQUIRES: scratch is half as large as values.
void quick_reduce_scatter(Communicator& communicator, std::span<float> values, std::span<float> scratch);
void quick_all_gather(Communicator& communicator, std::span<std::byte> values);

// For half the traffic: whatever goes over the wire is bf16, sums are floats, made in the order of the ranks. A rank
// sums its part of the values, to which it adds its own as they are; the sums are rounded once. All ranks get the same
// bits. One rank alone keeps its values. REQUIRES: scratch has bf16_scratch_bytes() and is aligned for a bf16.
void all_reduce_bf16(Communicator& communicator, std::span<float> values, std::span<std::byte> scratch);
[[nodiscard]] std::size_t bf16_scratch_bytes(std::size_t count, int ranks);

}  // namespace tide
