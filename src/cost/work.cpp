#include "cost/work.h"

namespace tide {
namespace {

double elements(const Step& step, const Operand& operand) {
  return static_cast<double>(step.shape_of(operand).elements());
}

// Multiply-adds of a layer with weights: every output element meets one filter.
double weighted_flops(const Step& step, const Task& task) {
  double weight_elements = 0;
  double positions = 0;
  for (const Operand& operand : step.operands_of(task)) {
    const Shape& shape = step.shape_of(operand);
    if (operand.role == Role::weight || operand.role == Role::d_weight) weight_elements = elements(step, operand);
    // A convolution applies each weight once per output position, a transposed one once
    // per input position.
    const bool transposed = step.layer_kind(task) == LayerKind::transposed_convolution;
    const bool counts = transposed ? operand.role == Role::x || operand.role == Role::dx
                                   : operand.role == Role::y || operand.role == Role::dy;
    if (counts)
      positions = static_cast<double>(shape.batch()) *
                  (step.layer_kind(task) == LayerKind::fully_connected ? 1.0 : static_cast<double>(shape.positions()));
  }
  return 2 * weight_elements * positions;
}

double flops_per_element(LayerKind kind) {
  switch (kind) {
    case LayerKind::lrn: return 20;
    case LayerKind::softmax_cross_entropy: return 12;
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::dropout: return 10;
    case LayerKind::max_pool:
    case LayerKind::average_pool: return 9;
    case LayerKind::batch_norm: return 8;
    default: return 1;
  }
}

}  // namespace

Work work_of(const Step& step, TaskId id) {
  const Task& task = step.task(id);
  const LayerKind kind = step.layer_kind(task);
  Work work;
  double largest = 0;
  for (const Operand& operand : step.operands_of(task)) {
    const double count = elements(step, operand);
    largest = std::max(largest, count);
    work.bytes += static_cast<double>(bytes_of(step, operand).count()) * (adds(step, operand) ? 2 : 1);
  }
  const bool weighted =
      kind == LayerKind::convolution || kind == LayerKind::transposed_convolution || kind == LayerKind::fully_connected;
  const bool layer_task =
      task.kind != TaskKind::update && task.kind != TaskKind::norm && task.kind != TaskKind::sum_gradients;
  work.flops =
      weighted && layer_task ? weighted_flops(step, task) : largest * (layer_task ? flops_per_element(kind) : 4);
  return work;
}

}  // namespace tide
