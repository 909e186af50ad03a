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

// One function per kind of layer, which knows its forward, replay and backward tasks: a new kind is a file that
// defines its own. Kinds without one are named by the linker.
#define TIDE_RECIPE(kind) [[nodiscard]] Recipe kind##_recipe(const TaskView& view, const ContextPtr& context);
TIDE_LAYER_KINDS(TIDE_RECIPE)
#undef TIDE_RECIPE

// Of tasks of any layer.
[[nodiscard]] Recipe sum_recipe(const TaskView& view, const ContextPtr& context, Role from, Role to);
[[nodiscard]] Recipe norm_recipe(const TaskView& view, const ContextPtr& context);
[[nodiscard]] Recipe update_recipe(const TaskView& view, const ContextPtr& context);

// How many threads a kernel may use.
[[nodiscard]] int threads_of(const ContextPtr& context);

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
