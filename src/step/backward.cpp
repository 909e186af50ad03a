// The backward pass. Gradients flow through contribute(): a value with one consumer gets
// that consumer's gradient as it is, one with several gets sums as they arrive, so that at
// most two partial gradients are alive at a time.
#include <algorithm>

#include "step/assembler.h"

namespace tide {

void StepAssembler::contribute(Value value, TensorId gradient, LayerId from) {
  TensorId& sum = chunk_->gradients[flat(value)];
  TensorId& second = chunk_->second_gradients[flat(value)];
  if (!sum.valid()) {
    sum = gradient;
    return;
  }
  if (sums_gradients(value) && !second.valid()) {
    second = gradient;
    return;
  }
  const TensorId addend = second.valid() ? second : gradient;
  if (second.valid()) second = gradient;
  const TensorId total =
      new_tensor(TensorClass::activation_gradient, batch_shape(value), value.layer, Role::dy, value.output);
  new_task(TaskKind::sum_gradients, value.layer, backward_step(from),
           {{Role::x, sum, Access::read, 0}, {Role::x, addend, Access::read, 1}, {Role::y, total, Access::write}});
  allow_in_place(Role::x, Role::y);
  sum = total;
}

NewOperand StepAssembler::parameter_gradient(ParameterId parameter, Role role, LayerId id) {
  return in_parts() && chunks_.size() > 1 ? leaf_gradient(parameter, role, id) : whole_gradient(parameter, role, id);
}

void StepAssembler::arrive(ParameterId parameter) {
  // Only when the last layer that uses the parameter is through, frozen ones included:
  // their backward still reads the old value.
  if (in_parts()) arrive_at_leaf(parameter);
  ParameterState& state = parameters_[parameter.index()];
  if (++state.arrived < state.expected || !state.gradient.valid() || step_.options.part != Part::whole) return;
  if (is_shared())
    complete(parameter);
  else if (step_.options.optimizer.clip_norm == 0)
    update(parameter, TensorId());
}

void StepAssembler::backward(LayerId id) {
  const Layer& current = layer(id);
  const KindDescription& kind = kind_of(id);
  if (current.kind == LayerKind::input) return;
  if (!needs_[id.index()] && !superneurons()) return;
  fetch_parameters(id);
  if (is_fused(id)) return backward_fused(id);
  if (kind.passes_gradient && applies(*kind.passes_gradient, id)) {
    for (const Value& input : current.inputs)
      if (needs_gradient(input)) contribute(input, chunk_->gradients[flat({id, 0})], id);
    return;
  }
  std::vector<NewOperand> gradients;
  backward_split(id, gradients);
  backward_task(TaskKind::backward, id, kind.backward, gradients);
  // Updates first: they free the gradients before a sum may need room.
  for (const LayerParameter& parameter : current.parameters) arrive(parameter.id);
  // The input batch's own gradient (rules `superneurons`) is made, counted and used by nobody.
  for (const NewOperand& gradient : gradients)
    contribute(current.inputs[static_cast<std::size_t>(gradient.index)], gradient.tensor, id);
}

// Whichever goes first keeps the other's operand alive: weights first holds d_weight,
// data first holds x. The paper counts x, dy and dx together, which is data first.
void StepAssembler::backward_split(LayerId id, std::vector<NewOperand>& gradients) {
  const KindDescription& kind = kind_of(id);
  if (kind.backward_weights.operands.empty()) return;
  const Layer& current = layer(id);
  const Bytes x_bytes = step_.storage(storage_of(value_tensor(current.inputs[0]))).bytes;
  const Shape& weight = network_->parameters[current.parameter(ParameterRole::weight).index()].shape;
  const bool data_first = superneurons() || bytes_of(weight, DataType::f32) > x_bytes;
  if (data_first) backward_task(TaskKind::backward_data, id, kind.backward_data, gradients);
  backward_task(TaskKind::backward_weights, id, kind.backward_weights, gradients);
  if (!data_first) backward_task(TaskKind::backward_data, id, kind.backward_data, gradients);
}

void StepAssembler::backward_task(TaskKind kind, LayerId id, const TaskTable& table,
                                  std::vector<NewOperand>& gradients) {
  const std::vector<NewOperand> operands = operands_for(id, table.operands);
  if (std::all_of(operands.begin(), operands.end(), [](const NewOperand& o) { return o.access == Access::read; }))
    return;
  new_task(kind, id, backward_step(id), operands);
  for (const auto& [source, target] : table.in_place) allow_in_place(source, target);
  for (const NewOperand& operand : operands)
    if (operand.role == Role::dx) gradients.push_back(operand);
}

}  // namespace tide
