#include "cost/work.h"

#include "network/kind.h"

namespace tide {
namespace {

double elements(const Step& step, const Operand& operand) {
  return static_cast<double>(step.shape_of(operand).elements());
}

// Multiply-adds of a layer with weights: every output element meets one filter. A convolution
// applies each weight once per output position, a transposed one once per input position, a
// matrix product once per sample.
double product_flops(const Step& step, const Task& task, Product product) {
  const bool transposed = product == Product::transposed_convolution;
  double weight_elements = 0;
  double positions = 0;
  for (const Operand& operand : step.operands_of(task)) {
    const Shape& shape = step.shape_of(operand);
    if (operand.role == Role::weight || operand.role == Role::d_weight) weight_elements = elements(step, operand);
    const bool counts = transposed ? operand.role == Role::x || operand.role == Role::dx
                                   : operand.role == Role::y || operand.role == Role::dy;
    if (counts)
      positions = static_cast<double>(shape.batch()) *
                  (product == Product::matrix ? 1.0 : static_cast<double>(shape.positions()));
  }
  return 2 * weight_elements * positions;
}

}  // namespace

Work work_of(const Step& step, TaskId id) {
  const Task& task = step.task(id);
  const KindDescription& kind = description_of(step.layer_kind(task));
  Work work;
  double largest = 0;
  for (const Operand& operand : step.operands_of(task)) {
    const double count = elements(step, operand);
    largest = std::max(largest, count);
    work.bytes += static_cast<double>(bytes_of(step, operand).count()) * (adds(step, operand) ? 2 : 1);
  }
  if (!is_of_layer(task.kind))
    work.flops = largest * 4;
  else if (kind.product != Product::none)
    work.flops = product_flops(step, task, kind.product);
  else
    work.flops = largest * kind.flops_per_element;
  return work;
}

}  // namespace tide
