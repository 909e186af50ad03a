// Network -> Step.
//
// The operands of each task, in order ([..] only where it applies; * one per input or
// output; > written, + written or accumulated, the rest read):
//
//   forward and replay
//     input, in bf16                             x >y
//     convolution, transposed, fully connected   x weight [bias] >y
//     max_pool                                   x >y [>indices: training, minimal rules]
//     other pools, activations, lrn, dropout     x >y
//     softmax_cross_entropy                      x labels >y >metric
//     batch_norm, training                       x [x] weight bias running_mean running_variance
//                                                >y >mean >inverse_deviation >running_mean >running_variance
//     batch_norm, replay                         x [x] weight bias mean inverse_deviation >y
//     batch_norm, forward only                   x [x] weight bias running_mean running_variance >y
//     add, multiply, concat                      x* >y
//     split, fork                                x >y*
//   backward (rules `superneurons` add reads that the kernels ignore: see golden tests)
//     convolution ... backward_data              weight dy >dx
//     convolution ... backward_weights           x dy +d_weight [+d_bias]
//     max_pool                                   indices dy >dx   (superneurons: x y dy >dx)
//     other pools, dropout                       dy >dx
//     relu, sigmoid, tanh                        y dy >dx
//     lrn                                        x dy >dx
//     softmax_cross_entropy                      y labels >dx
//     batch_norm                                 x [y] dy [dy] weight [bias] mean inverse_deviation [>dx*] [+d_weight
//     +d_bias]
//                                                (the second x, y, the second dy, bias: of fused ones, see fuse.h)
//     multiply                                   x x dy >dx*     (one per input that needs it; see Operand::index)
//     concat                                     dy >dx*
//     split, fork                                dy* >dx         (fork sums)
//     add (superneurons only; else no task)      dy >dx*
//   sum_gradients                                x x >y
//   norm                                         gradient* >norm
//   update          (each once per parameter) gradient [norm] weight [first_moment] [second_moment] >weight
//   [>first_moment] [>second_moment]
//
// Flatten, and dropout in a forward-only step, have no task: their output is the tensor
// of their input. Add has no backward task under `minimal`: its inputs' gradient is dy.
// In place, where liveness allows it: activations, dropout, batch norm, add, multiply,
// softmax forward (x -> y); activations, dropout, batch norm, lrn, multiply backward
// (dy -> dx); softmax backward (y -> dx); sum_gradients (x -> y). Updated values (>weight ...)
// always share the storage of the old ones.
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
