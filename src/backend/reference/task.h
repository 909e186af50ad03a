// A task with its operands as doubles: what every kernel of the reference works on.
// Activations lie channels last, parameters in their logical order.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/task_view.h"

namespace tide::reference {

using Values = std::vector<double>;

// Where element (n, c, h, w) of an activation lies.
struct Grid {
  Shape shape;
  [[nodiscard]] std::size_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return static_cast<std::size_t>(((n * shape.height() + h) * shape.width() + w) * shape.channels() + c);
  }
};

struct ReferenceTask {
  TaskView view;
  std::span<Values* const> operands;
  const StepState& state;

  [[nodiscard]] const Values& in(Role role, std::size_t nth = 0) const { return *operands[view.read(role, nth)]; }
  // A written operand: zeros if it is made here, what is there already if it is accumulated.
  [[nodiscard]] Values& out(Role role, std::size_t nth = 0) const {
    const std::size_t position = view.written(role, nth);
    Values& values = *operands[position];
    const auto size = static_cast<std::size_t>(view.shape(position).elements());
    if (view.accumulates(position) && values.size() != size)
      throw Error("task '{}' accumulates into a tensor that was never written", task_name(view.step(), view.id()));
    if (!view.accumulates(position)) values.assign(size, 0.0);
    return values;
  }
  [[nodiscard]] bool writes(Role role) const { return view.find_written(role).has_value(); }
};

// One function per kind of layer, which does forward, replay and all of backward: a new kind is a file that
// defines its own. Kinds without one are named by the linker.
#define TIDE_RUN(kind) void run_##kind(const ReferenceTask& task);
TIDE_LAYER_KINDS(TIDE_RUN)
#undef TIDE_RUN

// Of tasks of any layer.
void run_sum_gradients(const ReferenceTask& task);
void run_norm(const ReferenceTask& task);
void run_update(const ReferenceTask& task);

}  // namespace tide::reference
