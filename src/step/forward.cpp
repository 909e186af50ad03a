#include <algorithm>

#include "step/assembler.h"

namespace tide {

void StepAssembler::forward(LayerId id) {
  const Layer& current = layer(id);
  const bool training = step_.options.training;
  std::vector<TensorId> inputs;
  for (const Value& input : current.inputs) inputs.push_back(value_tensor(input));

  if (current.kind == LayerKind::input) {
    chunk_->values[flat({id, 0})] = new_tensor(TensorClass::input, batch_shape({id, 0}), id, Role::x);
    if (network_->has_loss())
      chunk_->labels = new_tensor(TensorClass::input, Shape{chunk_->samples, network_->labels_per_sample(), 1, 1}, id,
                                  Role::labels, 0, {}, DataType::i32);
    for (const TensorId tensor : {chunk_->values[flat({id, 0})], chunk_->labels})
      if (tensor.valid()) step_.storages[storage_of(tensor).index()].entry = tensor;  // filled by the host
    if (step_.options.activations == DataType::f32) return;
    // The host fills in floats; the layers read what this task makes of them.
    const TensorId batch = chunk_->values[flat({id, 0})];
    chunk_->values[flat({id, 0})] = new_tensor(TensorClass::activation, batch_shape({id, 0}), id, Role::y);
    new_task(TaskKind::forward, id, 1, {{Role::x, batch}, {Role::y, output_tensor(id), Access::write}});
    return;
  }
  if (current.kind == LayerKind::flatten || (current.kind == LayerKind::dropout && !training)) {
    chunk_->values[flat({id, 0})] = inputs[0];
    return;
  }

  std::vector<NewOperand> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    operands.push_back({Role::x, inputs[i], Access::read, static_cast<std::int16_t>(i)});
  for (std::size_t o = 0; o < current.outputs.size(); ++o) {
    const Value value{id, static_cast<std::int32_t>(o)};
    // A loss is too small to save bytes on.
    const bool loss = current.kind == LayerKind::softmax_cross_entropy;
    chunk_->values[flat(value)] =
        new_tensor(TensorClass::activation, batch_shape(value), id, Role::y, static_cast<std::int32_t>(o), {},
                   loss ? std::optional(DataType::f32) : std::nullopt);
  }
  const TensorId y = output_tensor(id);

  if (current.kind == LayerKind::batch_norm)
    return is_exact() ? forward_normalize(id) : forward_batch_norm(id, operands, y);

  for (std::size_t k = 0; k < current.parameters.size(); ++k)
    operands.push_back({k == 0 ? Role::weight : Role::bias, parameters_[current.parameters[k].index()].value});
  if (current.kind == LayerKind::softmax_cross_entropy) operands.push_back({Role::labels, chunk_->labels});
  for (std::size_t o = 0; o < current.outputs.size(); ++o)
    operands.push_back(
        {Role::y, output_tensor(id, static_cast<std::int32_t>(o)), Access::write, static_cast<std::int16_t>(o)});

  if (current.kind == LayerKind::max_pool && training && !superneurons() && needs_gradient({id, 0})) {
    const Window& window = current.as<PoolOptions>().window;
    const bool small = checked_multiply(window.kernel_height, window.kernel_width) <= 255;
    chunk_->saved_indices[id.index()] = new_tensor(TensorClass::saved_state, batch_shape({id, 0}), id, Role::indices, 0,
                                                   {}, small ? DataType::u8 : DataType::i32);
    operands.push_back({Role::indices, chunk_->saved_indices[id.index()], Access::write});
  }
  if (current.kind == LayerKind::softmax_cross_entropy) {
    TensorId& metric = metrics_[id.index()];
    const Access access = metric.valid() ? Access::accumulate : Access::write;
    if (!metric.valid()) {
      metric = new_tensor(TensorClass::metric, Shape{1, 2, 1, 1}, id, Role::metric);
      Storage& storage = step_.storages[storage_of(metric).index()];
      storage.persistent = true;  // the host reads it after the step
      storage.exit = metric;
    }
    operands.push_back({Role::metric, metric, access});
  }
  new_task(TaskKind::forward, id, number_[id.index()], operands);

  switch (current.kind) {
    case LayerKind::relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::dropout:
    case LayerKind::add:
    case LayerKind::multiply:
    case LayerKind::softmax_cross_entropy: allow_in_place(Role::x, Role::y); break;
    default: break;
  }
}

void StepAssembler::forward_batch_norm(LayerId id, std::vector<NewOperand> operands, TensorId y) {
  const Layer& current = layer(id);
  operands.insert(operands.end(), {{Role::weight, parameters_[current.parameters[0].index()].value},
                                   {Role::bias, parameters_[current.parameters[1].index()].value},
                                   {Role::running_mean, statistics_[id.index()][0]},
                                   {Role::running_variance, statistics_[id.index()][1]},
                                   {Role::y, y, Access::write}});
  if (step_.options.training) {
    const Shape per_channel{1, current.outputs[0].channels(), 1, 1};
    saved_mean_[id.index()] = new_tensor(TensorClass::saved_state, per_channel, id, Role::mean);
    saved_deviation_[id.index()] = new_tensor(TensorClass::saved_state, per_channel, id, Role::inverse_deviation);
    operands.push_back({Role::mean, saved_mean_[id.index()], Access::write});
    operands.push_back({Role::inverse_deviation, saved_deviation_[id.index()], Access::write});
    operands.push_back({Role::running_mean, successor(statistics_[id.index()][0]), Access::write});
    operands.push_back({Role::running_variance, successor(statistics_[id.index()][1]), Access::write});
  }
  new_task(TaskKind::forward, id, number_[id.index()], operands);
  allow_in_place(Role::x, Role::y);
  if (!step_.options.training) return;
  allow_in_place(Role::running_mean, Role::running_mean);
  allow_in_place(Role::running_variance, Role::running_variance);
}

namespace {

bool makes_output(const Step& step, TaskId task) {
  const auto operands = step.operands_of(task);
  return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) { return operand.role == Role::y; });
}

}  // namespace

void StepAssembler::make_replays() {
  step_.replay_of.resize(step_.tasks.size());
  if (!step_.options.training) return;
  for (std::size_t t = 0; t < step_.ordered_tasks; ++t) {
    const LayerKind kind = step_.layer_kind(step_.tasks[t]);
    // A loss is never dropped: its replay would count the metric twice. Statistics alone are nothing to run again.
    if (step_.tasks[t].kind != TaskKind::forward || kind == LayerKind::softmax_cross_entropy ||
        !makes_output(step_, TaskId(t)))
      continue;
    const LayerId id = step_.tasks[t].layer;
    std::vector<NewOperand> operands;
    for (const Operand& operand : step_.operands_of(TaskId(t))) {
      // Batch norm normalizes with the statistics it saved and updates nothing.
      if (operand.role == Role::running_mean || operand.role == Role::running_variance || operand.role == Role::mean ||
          operand.role == Role::inverse_deviation)
        continue;
      if (kind == LayerKind::batch_norm && operand.role == Role::y) {
        operands.push_back({Role::mean, saved_mean_[id.index()]});
        operands.push_back({Role::inverse_deviation, saved_deviation_[id.index()]});
      }
      operands.push_back({operand.role, operand.tensor, operand.access, operand.index, operand.view});
    }
    new_task(TaskKind::replay, id, number_[id.index()], operands);
    step_.tasks.back().first_sample = step_.tasks[t].first_sample;
    if (!step_.tasks[t].in_place.empty()) allow_in_place(Role::x, Role::y);
    step_.replay_of[t] = TaskId(step_.tasks.size() - 1);
  }
  step_.replay_of.resize(step_.tasks.size());
}

}  // namespace tide
