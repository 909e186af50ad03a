// Backward of batch norms that take in other layers (fuse.h): a second input, a function, the sum of two gradients.
#include <algorithm>

#include "step/assembler.h"

namespace tide {

namespace {
bool has_function(const Layer& layer) { return layer.as<BatchNormOptions>().fused != FusedFunction::none; }
}  // namespace

bool StepAssembler::sums_gradients(Value value) const {
  const Layer& producer = layer(value.layer);
  if (!step_.options.fuse || producer.kind != LayerKind::batch_norm) return false;
  // Without a function, the gradient of a second input is that of the output itself.
  return producer.inputs.size() == 1 || has_function(producer);
}

bool StepAssembler::is_fused(LayerId id) const {
  const Layer& current = layer(id);
  if (current.kind != LayerKind::batch_norm) return false;
  return current.inputs.size() == 2 || has_function(current) || chunk_->second_gradients[flat({id, 0})].valid();
}

void StepAssembler::backward_fused(LayerId id) {
  const Layer& current = layer(id);
  const Value input = current.inputs[0];
  const bool adds = current.inputs.size() == 2, gated = has_function(current);
  const TensorId second_dy = chunk_->second_gradients[flat({id, 0})];
  const TensorId dy = chunk_->gradients[flat({id, 0})];
  std::vector<NewOperand> operands{{Role::x, value_tensor(input)}};
  // The slope of the function follows from y; without a second input, from x as well.
  if (gated && adds) operands.push_back({Role::y, output_tensor(id)});
  operands.push_back({Role::dy, dy});
  if (second_dy.valid()) operands.push_back({Role::dy, second_dy});
  operands.push_back(parameter_value(id, ParameterRole::scale));
  if (gated && !adds) operands.push_back(parameter_value(id, ParameterRole::shift));
  operands.push_back({Role::mean, saved(id, Role::mean)});
  operands.push_back({Role::inverse_deviation, saved(id, Role::inverse_deviation)});
  TensorId dx, second_dx;
  if (needs_gradient(input)) {
    dx = new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx);
    operands.push_back({Role::dx, dx, Access::write, 0});
  }
  if (adds && gated && needs_gradient(current.inputs[1])) {
    second_dx = new_tensor(TensorClass::activation_gradient, batch_shape(current.inputs[1]), id, Role::dx, 1);
    operands.push_back({Role::dx, second_dx, Access::write, 1});
  }
  if (trains(current)) {
    for (const LayerParameter& parameter : current.parameters)
      operands.push_back(parameter_gradient(parameter.id, gradient_role(parameter.role), id));
  }
  if (std::none_of(operands.begin(), operands.end(), [](const NewOperand& o) { return o.access != Access::read; })) {
    // Frozen, on top of nothing that is trained: only the second input's gradient goes on.
    if (adds && needs_gradient(current.inputs[1])) contribute(current.inputs[1], dy, id);
    return;
  }
  new_task(TaskKind::backward, id, backward_step(id), operands);
  allow_in_place(Role::dy, Role::dx);
  allow_in_place(Role::y, Role::dx);
  // What is fused sums and masks before it reads x once more.
  if (!gated && !second_dy.valid()) allow_in_place(Role::x, Role::dx);
  for (const LayerParameter& parameter : current.parameters) arrive(parameter.id);
  if (dx.valid()) contribute(input, dx, id);
  if (second_dx.valid()) contribute(current.inputs[1], second_dx, id);
  if (adds && !gated && needs_gradient(current.inputs[1])) contribute(current.inputs[1], dy, id);
}

}  // namespace tide
