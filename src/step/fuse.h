// Rewrites that make fewer, larger tasks and fewer tensors of a network:
//
//   batch_norm -> function                one batch norm with that function
//   batch_norm -> add(other) -> function  one batch norm with a second input and that function
//   batch_norm -> add(other)              one batch norm with a second input
//
// where a function is relu, clip, silu or hard_swish (the last two not behind an addition), and
// nobody else reads what lies between. The layer that results has the name of the batch norm.
// build_step() then also sums several gradients of a batch norm's output within its backward
// task, and updates small parameters together.
#pragma once

#include "network/network.h"

namespace tide {

// An addition is not fused where its backward task, which then has up to four tensors of its
// size at once instead of two, would take more than `limit` bytes; zero: none.
[[nodiscard]] Network fuse_layers(const Network& network, std::int64_t batch, DataType type, Bytes limit);

}  // namespace tide
