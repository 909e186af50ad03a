#include "backend/reference/run.h"

#include <array>

namespace tide {

using namespace reference;

namespace {

void run_layer(const ReferenceTask& task) {
  using Function = void (*)(const ReferenceTask&);
  static constexpr std::array<Function, kLayerKinds> kFunctions{
#define TIDE_FUNCTION(kind) run_##kind,
      TIDE_LAYER_KINDS(TIDE_FUNCTION)
#undef TIDE_FUNCTION
  };
  kFunctions[static_cast<std::size_t>(task.view.layer_kind())](task);
}

}  // namespace

void run_reference(const Step& step, TaskId id, std::span<Values* const> operands, const StepState& state) {
  const ReferenceTask task{TaskView(step, id), operands, state};
  switch (task.view.kind()) {
    case TaskKind::sum_gradients: return run_sum_gradients(task);
    case TaskKind::norm: return run_norm(task);
    case TaskKind::update: return run_update(task);
    case TaskKind::forward:
    case TaskKind::replay:
    case TaskKind::backward:
    case TaskKind::backward_data:
    case TaskKind::backward_weights: return run_layer(task);
    case TaskKind::reduce:
    case TaskKind::scatter:
    case TaskKind::gather: throw Error("'{}' takes several ranks", task_name(step, id));
  }
}

void reference::run_input(const ReferenceTask& task) { task.out(Role::y) = task.in(Role::x); }

// A flattened value is the value itself.
void reference::run_flatten(const ReferenceTask& task) {
  throw Error("task '{}' has nothing to run", task_name(task.view.step(), task.view.id()));
}

}  // namespace tide
