// Gradients that are summed over several ranks, in buckets: one tensor that holds the gradients of several parameters
// side by side, each seen by its tasks through a view. Backward tasks write straight into it.
//
// Which parameters share a bucket follows from the network and a size alone, never from a plan: ranks may have
// different plans, and must sum the same things in the same order.
#pragma once

#include <functional>

#include "step/step.h"

namespace tide {

// The parameters that are trained, the last first, since their gradients are there first. A bucket ends when it has
// `size` bytes or more, by the parameters' shapes.
[[nodiscard]] std::vector<std::vector<ParameterId>> buckets_of(const Network& network, Bytes size);

// Lays the buckets of a step out anew where a backend takes other bytes for a parameter than its shape says.
void lay_out_buckets(Step& step, const std::function<Bytes(ParameterId)>& bytes);

// Whether a tensor is a bucket.
[[nodiscard]] bool is_bucket(const Tensor& tensor);

}  // namespace tide
