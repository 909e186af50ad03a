#include <algorithm>

#include "step/assembler.h"

namespace tide {

void StepAssembler::forward(LayerId id) {
  const Layer& current = layer(id);
  const KindDescription& kind = kind_of(id);
  if (current.kind == LayerKind::input) return forward_input(id);
  if (kind.alias == Alias::always || (kind.alias == Alias::forward_only && !step_.options.training)) {
    chunk_->values[flat({id, 0})] = value_tensor(current.inputs[0]);
    return;
  }
  fetch_parameters(id);
  make_outputs(id);
  if (mixes_samples(id) && is_exact()) return forward_normalize(id);
  new_task(TaskKind::forward, id, number_[id.index()], operands_for(id, kind.forward.operands));
  for (const auto& [source, target] : kind.forward.in_place) allow_in_place(source, target);
}

void StepAssembler::forward_input(LayerId id) {
  TensorId& value = chunk_->values[flat({id, 0})];
  value = new_tensor(TensorClass::input, batch_shape({id, 0}), id, Role::x);
  if (network_->has_loss())
    chunk_->labels = new_tensor(TensorClass::input, Shape{chunk_->samples, network_->labels_per_sample()}, id,
                                Role::labels, 0, {}, DataType::i32);
  for (const TensorId tensor : {value, chunk_->labels})
    if (tensor.valid()) step_.storages[storage_of(tensor).index()].entry = tensor;  // filled by the host
  if (step_.options.activations == DataType::f32) return;
  // The host fills in floats; the layers read what this task makes of them.
  const TensorId batch = value;
  value = new_tensor(TensorClass::activation, batch_shape({id, 0}), id, Role::y);
  new_task(TaskKind::forward, id, 1, {{Role::x, batch}, {Role::y, value, Access::write}});
}

void StepAssembler::make_outputs(LayerId id) {
  const std::optional<DataType> type = kind_of(id).full_precision ? std::optional(DataType::f32) : std::nullopt;
  for (std::size_t o = 0; o < layer(id).outputs.size(); ++o) {
    const Value value{id, static_cast<std::int32_t>(o)};
    chunk_->values[flat(value)] =
        new_tensor(TensorClass::activation, batch_shape(value), id, Role::y, value.output, {}, type);
  }
}

namespace {

bool makes_output(const Step& step, TaskId task) {
  const auto operands = step.operands_of(task);
  return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) { return operand.role == Role::y; });
}

// What the rows of a replay stand for among the operands of its forward task.
std::vector<NewOperand> replay_operands(std::span<const Operand> forward, const std::vector<OperandRow>& rows) {
  std::vector<NewOperand> operands;
  operands.reserve(forward.size());
  if (rows.empty())
    for (const Operand& operand : forward)
      operands.push_back({operand.role, operand.tensor, operand.access, operand.index, operand.view});
  for (const OperandRow& row : rows)
    for (const Operand& operand : forward)
      if (operand.role == row.role)
        operands.push_back({row.role, operand.tensor, row.access, operand.index, operand.view});
  return operands;
}

}  // namespace

void StepAssembler::make_replays() {
  step_.replay_of.resize(step_.tasks.size());
  if (!step_.options.training) return;
  for (std::size_t t = 0; t < step_.ordered_tasks; ++t) {
    const LayerId id = step_.tasks[t].layer;
    // Statistics alone are nothing to run again.
    if (step_.tasks[t].kind != TaskKind::forward || !kind_of(id).replays || !makes_output(step_, TaskId(t))) continue;
    new_task(TaskKind::replay, id, number_[id.index()],
             replay_operands(step_.operands_of(TaskId(t)), kind_of(id).replay));
    step_.tasks.back().first_sample = step_.tasks[t].first_sample;
    if (step_.tasks[t].in_place_count > 0) allow_in_place(Role::x, Role::y);
    step_.replay_of[t] = TaskId(step_.tasks.size() - 1);
  }
  step_.replay_of.resize(step_.tasks.size());
}

}  // namespace tide
