// The ways to run a task: known when the step is annotated, made when it is prepared.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/context.h"
#include "backend/cuda/element.h"
#include "backend/task_view.h"

namespace tide::cuda {

struct Variant {
  std::string name;
  Bytes workspace;
  std::function<Kernel()> make;
  bool slow = false;  // a last resort
};
using Recipe = std::vector<Variant>;  // the fastest first

inline Bytes bytes(std::size_t count) { return Bytes(static_cast<std::int64_t>(count)); }

inline Recipe recipe(Kernel kernel, std::size_t workspace = 0) {
  return {{"default", bytes(workspace), [kernel = std::move(kernel)] { return kernel; }}};
}

// The one variant that is kept where each task is to have one: the fastest of those with which
// the task stays among the largest of its step, `room`. It depends on the step alone, not on a
// plan's budget, so that all plans give the same bits.
[[nodiscard]] const Variant& fixed_choice(const Recipe& recipe, Bytes operands, Bytes room);

// One function per kind of layer, which knows its forward, replay and backward tasks: a new kind is a file that
// defines its own. Kinds without one are named by the linker.
#define TIDE_RECIPE(kind) [[nodiscard]] Recipe kind##_recipe(const TaskView& view, const ContextPtr& context);
TIDE_LAYER_KINDS(TIDE_RECIPE)
#undef TIDE_RECIPE

// Of tasks of any layer.
[[nodiscard]] Recipe sum_recipe(const TaskView& view, const ContextPtr& context, Role from, Role to);
[[nodiscard]] Recipe norm_recipe(const TaskView& view, const ContextPtr& context);
[[nodiscard]] Recipe update_recipe(const TaskView& view, const ContextPtr& context);

[[nodiscard]] inline Element element_of(const TaskView& view, std::size_t position) {
  return view.tensor(position).type == DataType::bf16 ? Element::bf16 : Element::f32;
}

// Operand addresses with their type.
template <typename Element = float>
[[nodiscard]] const Element* input_of(const Launch& launch, std::size_t position) {
  return reinterpret_cast<const Element*>(launch.operands[position]);
}
template <typename Element = float>
[[nodiscard]] Element* output_of(const Launch& launch, std::size_t position) {
  return reinterpret_cast<Element*>(launch.operands[position]);
}

}  // namespace tide::cuda
