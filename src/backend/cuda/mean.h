// Means over some of the axes.
#pragma once

#include <vector>

#include "backend/cuda/recipe.h"

namespace tide::cuda {

// Of a layer's input, forward and backward, over all elements along these axes. REQUIRES: the output is what is left,
// with or without axes of one element.
[[nodiscard]] Recipe mean_over(const TaskView& view, const ContextPtr& context, const std::vector<std::int64_t>& axes);

}  // namespace tide::cuda
