// Network -> Step.
//
// The operands of a layer's tasks, what may be in place, what is saved and how it is run again are in
// the description of its kind (network/kind.h, network/kinds/). Two kinds have tasks of their own:
//
//   input, in bf16: forward                      x >y
//   batch_norm, fused (fuse.h): backward         x [y] dy [dy] weight [bias] mean inverse_deviation [>dx*]
//                                                [+d_weight +d_bias]
//   batch_norm, in sub-batches                   see passes.cpp
//
// and these belong to no layer ([..] only where it applies; * several; > written, + written or accumulated):
//
//   sum_gradients                                x x >y
//   norm                                         gradient* >norm
//   update          (each once per parameter)    gradient [norm] weight [first_moment] [second_moment] >weight
//                                                [>first_moment] [>second_moment]
//
// The result of sum_gradients may be in place of either x; updated values always share the storage of
// the old ones.
#pragma once

#include "step/step.h"

namespace tide {

// The layers in the order of SuperNeurons' Algorithm 1: depth first, a join only once all
// of its inputs are there. Iterative, so that depth is no limit.
[[nodiscard]] std::vector<LayerId> execution_order(const Network& network);

// The network with an explicit fork layer behind every value that has several consumers.
[[nodiscard]] Network insert_forks(const Network& network);

// Throws an Error for a batch below 1, sizes that overflow, or a training step of a
// network without a loss.
[[nodiscard]] Step build_step(NetworkPtr network, const StepOptions& options);

}  // namespace tide
