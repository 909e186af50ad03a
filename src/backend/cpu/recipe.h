// How a task will be run: known when the step is annotated, made when it is prepared.
#pragma once

#include <functional>
#include <memory>

#include "backend/backend.h"
#include "backend/task_view.h"

namespace tide::cpu {

class Context;
using ContextPtr = std::shared_ptr<Context>;

struct Recipe {
  Bytes workspace;
  std::function<Kernel()> make;  // may compile code: only for tasks that are run
};

inline Recipe recipe(Kernel kernel, Bytes workspace = {}) {
  return {workspace, [kernel = std::move(kernel)] { return kernel; }};
}

// One function per family of layers; each knows forward, replay and backward.
[[nodiscard]] Recipe convolution_recipe(const TaskView& view, const ContextPtr& context);  // transposed too
[[nodiscard]] Recipe fully_connected_recipe(const TaskView& view, const ContextPtr& context);
[[nodiscard]] Recipe max_pool_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe average_pool_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe global_average_pool_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe activation_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe dropout_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe lrn_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe batch_norm_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe loss_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe sum_recipe(const TaskView& view, Role from, Role to, int threads);
[[nodiscard]] Recipe copy_recipe(const TaskView& view, Role from, Role to, int threads);
[[nodiscard]] Recipe multiply_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe channels_recipe(const TaskView& view, int threads);  // concat, split
[[nodiscard]] Recipe norm_recipe(const TaskView& view, int threads);
[[nodiscard]] Recipe update_recipe(const TaskView& view, int threads);

// Operand or workspace addresses with their type.
template <typename Element>
[[nodiscard]] const Element* input_of(const Launch& launch, std::size_t position) {
  return reinterpret_cast<const Element*>(launch.operands[position]);
}
template <typename Element>
[[nodiscard]] Element* output_of(const Launch& launch, std::size_t position) {
  return reinterpret_cast<Element*>(launch.operands[position]);
}

}  // namespace tide::cpu
