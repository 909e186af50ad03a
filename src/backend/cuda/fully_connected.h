// y = x W^T, and its gradients, as matrix products: fully connected layers, and convolutions
// that move every position onto itself. x is rows x inputs, W outputs x inputs, all row-major.
#pragma once

#include "backend/cuda/recipe.h"

namespace tide::cuda {

struct DenseProblem {
  std::int64_t rows, inputs, outputs;
};
// Empty where the library does not have the shape.
[[nodiscard]] Recipe dense_recipe(const TaskView& view, const ContextPtr& context, const DenseProblem& problem);

}  // namespace tide::cuda
