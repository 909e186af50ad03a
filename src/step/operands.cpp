// From the operand tables of a kind to the tensors of a layer.
#include "step/assembler.h"

namespace tide {

bool StepAssembler::applies(When when, LayerId id) const {
  switch (when) {
    case When::always: return true;
    case When::training: return step_.options.training;
    case When::for_backward: return step_.options.training && !superneurons() && needs_gradient({id, 0});
    case When::minimal: return !superneurons();
    case When::superneurons: return superneurons();
    case When::slope_of_input: return kind_of(id).slope(layer(id)) == Slope::of_input;
    case When::slope_of_result: return kind_of(id).slope(layer(id)) == Slope::of_result;
    case When::moving_statistics: return step_.options.training && !keeps_statistics(layer(id));
  }
  return false;
}

std::vector<NewOperand> StepAssembler::operands_for(LayerId id, const std::vector<OperandRow>& rows) {
  std::vector<NewOperand> operands;
  operands.reserve(2 * rows.size());
  for (const OperandRow& row : rows) {
    if (!applies(row.when, id)) continue;
    if (row.access == Access::read)
      add_read(id, row.role, operands);
    else
      add_written(id, row, operands);
  }
  return operands;
}

void StepAssembler::add_read(LayerId id, Role role, std::vector<NewOperand>& operands) const {
  const Layer& current = layer(id);
  const auto outputs = static_cast<std::int32_t>(current.outputs.size());
  switch (role) {
    case Role::x:
      for (std::size_t i = 0; i < current.inputs.size(); ++i)
        operands.push_back({role, value_tensor(current.inputs[i]), Access::read, static_cast<std::int16_t>(i)});
      return;
    case Role::y:
      for (std::int32_t o = 0; o < outputs; ++o)
        operands.push_back({role, output_tensor(id, o), Access::read, static_cast<std::int16_t>(o)});
      return;
    case Role::dy:
      for (std::int32_t o = 0; o < outputs; ++o)
        operands.push_back({role, chunk_->gradients[flat({id, o})], Access::read, static_cast<std::int16_t>(o)});
      return;
    case Role::weight:
    case Role::bias:
      for (const LayerParameter& parameter : current.parameters)
        if (operand_role(parameter.role) == role) operands.push_back(parameter_value(parameter.id, role));
      return;
    case Role::mean:
    case Role::inverse_deviation:
    case Role::indices: operands.push_back({role, saved(id, role)}); return;
    case Role::running_mean:
    case Role::running_variance: operands.push_back({role, running(id, role)}); return;
    case Role::labels: operands.push_back({role, chunk_->labels}); return;
    case Role::dx:
    case Role::d_weight:
    case Role::d_bias:
    case Role::metric:
    case Role::first_moment:
    case Role::second_moment:
    case Role::gradient:
    case Role::norm:
    case Role::moments: break;
  }
  throw Error("a task of {} cannot read operand '{}'; mend the table of its kind", current.name, role_name(role));
}

void StepAssembler::add_written(LayerId id, const OperandRow& row, std::vector<NewOperand>& operands) {
  const Layer& current = layer(id);
  switch (row.role) {
    case Role::y:
      for (std::size_t o = 0; o < current.outputs.size(); ++o)
        operands.push_back(
            {row.role, output_tensor(id, static_cast<std::int32_t>(o)), Access::write, static_cast<std::int16_t>(o)});
      return;
    case Role::dx: return add_input_gradients(id, row, operands);
    case Role::d_weight:
    case Role::d_bias:
      for (const LayerParameter& parameter : current.parameters) {
        if (gradient_role(parameter.role) != row.role || !trains(current)) continue;
        operands.push_back(parameter_gradient(parameter.id, row.role, id));
      }
      return;
    case Role::mean:
    case Role::inverse_deviation:
    case Role::indices: operands.push_back({row.role, save(id, row.role), Access::write}); return;
    case Role::running_mean:
    case Role::running_variance:
      operands.push_back({row.role, successor(running(id, row.role)), Access::write});
      return;
    case Role::metric: return add_metric(id, operands);
    case Role::x:
    case Role::dy:
    case Role::weight:
    case Role::bias:
    case Role::labels:
    case Role::first_moment:
    case Role::second_moment:
    case Role::gradient:
    case Role::norm:
    case Role::moments: break;
  }
  throw Error("a task of {} cannot write operand '{}'; mend the table of its kind", current.name, role_name(row.role));
}

void StepAssembler::add_input_gradients(LayerId id, const OperandRow& row, std::vector<NewOperand>& operands) {
  const Layer& current = layer(id);
  StorageId taken;
  if (superneurons() && row.takes)
    for (const NewOperand& operand : operands)
      if (operand.role == *row.takes && !taken.valid()) taken = storage_of(operand.tensor);
  for (std::size_t i = 0; i < current.inputs.size(); ++i) {
    if (!needs_gradient(current.inputs[i])) continue;
    const TensorId dx = new_tensor(TensorClass::activation_gradient, batch_shape(current.inputs[i]), id, Role::dx,
                                   static_cast<std::int32_t>(i), i == 0 ? taken : StorageId());
    operands.push_back({Role::dx, dx, Access::write, static_cast<std::int16_t>(i)});
  }
}

void StepAssembler::add_metric(LayerId id, std::vector<NewOperand>& operands) {
  // In parts each has its own: the host adds them up.
  const std::size_t chunk = in_parts() ? chunk_index() : 0;
  TensorId& metric = metrics_[id.index() + chunk * network_->layers.size()];
  const Access access = metric.valid() ? Access::accumulate : Access::write;
  if (!metric.valid()) {
    metric = new_tensor(TensorClass::metric, Shape{2}, id, Role::metric, static_cast<std::int32_t>(chunk));
    Storage& storage = step_.storages[storage_of(metric).index()];
    storage.persistent = true;  // the host reads it after the step
    storage.exit = metric;
  }
  operands.push_back({Role::metric, metric, access});
}

TensorId StepAssembler::saved(LayerId id, Role role) const {
  for (const SavedTensor& entry : chunk_->saved[id.index()])
    if (entry.role == role) return entry.tensor;
  throw Error("layer {} has saved no '{}'; mend the table of its kind", layer(id).name, role_name(role));
}

TensorId StepAssembler::save(LayerId id, Role role) {
  const SavedState state = kind_of(id).saved(role, layer(id), chunk_->samples);
  const TensorId tensor = new_tensor(TensorClass::saved_state, state.shape, id, role, 0, {}, state.type);
  chunk_->saved[id.index()].push_back({role, tensor});
  return tensor;
}

TensorId StepAssembler::running(LayerId id, Role role) const {
  for (const SavedTensor& entry : statistics_[id.index()])
    if (entry.role == role) return entry.tensor;
  throw Error("layer {} keeps no '{}'; mend the table of its kind", layer(id).name, role_name(role));
}

}  // namespace tide
