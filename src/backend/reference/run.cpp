#include "backend/reference/run.h"

namespace tide {

using namespace reference;

void run_reference(const Step& step, TaskId id, std::span<Values* const> operands, const StepState& state) {
  const ReferenceTask task{TaskView(step, id), operands, state};
  switch (task.view.kind()) {
    case TaskKind::sum_gradients: return run_sum_gradients(task);
    case TaskKind::norm: return run_norm(task);
    case TaskKind::update: return run_update(task);
    default: break;
  }
  switch (task.view.layer_kind()) {
    case LayerKind::convolution:
    case LayerKind::transposed_convolution: return run_convolution(task);
    case LayerKind::fully_connected: return run_fully_connected(task);
    case LayerKind::max_pool:
    case LayerKind::average_pool:
    case LayerKind::global_average_pool: return run_pool(task);
    case LayerKind::relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh: return run_activation(task);
    case LayerKind::dropout: return run_dropout(task);
    case LayerKind::lrn: return run_lrn(task);
    case LayerKind::batch_norm: return run_batch_norm(task);
    case LayerKind::softmax_cross_entropy: return run_softmax_cross_entropy(task);
    case LayerKind::add:
    case LayerKind::multiply:
    case LayerKind::concat:
    case LayerKind::split:
    case LayerKind::fork: return run_join(task);
    case LayerKind::input: task.out(Role::y) = task.in(Role::x); return;
    case LayerKind::flatten: break;
  }
  throw Error("task '{}' has nothing to run", task_name(step, id));
}

}  // namespace tide
