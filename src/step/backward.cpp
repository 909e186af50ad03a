// The backward pass. Gradients flow through contribute(): a value with one consumer gets
// that consumer's gradient as it is, one with several gets sums as they arrive, so that at
// most two partial gradients are alive at a time.
#include <algorithm>

#include "step/assembler.h"

namespace tide {

bool StepAssembler::sums_gradients(Value value) const {
  const Layer& producer = layer(value.layer);
  if (!step_.options.fuse || producer.kind != LayerKind::batch_norm) return false;
  // Without relu, the gradient of a second input is that of the output itself.
  return producer.inputs.size() == 1 || producer.as<BatchNormOptions>().relu;
}

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

TensorId StepAssembler::parameter_gradient(ParameterId parameter, Role role, LayerId id, Access& access) {
  ParameterState& state = parameters_[parameter.index()];
  access = state.written ? Access::accumulate : Access::write;
  state.written = true;
  if (!state.gradient.valid()) {
    const Shape& shape = network_->parameters[parameter.index()].shape;
    state.gradient = new_tensor(TensorClass::parameter_gradient, shape, id, role);
    step_.tensors.back().parameter = parameter;
  }
  return state.gradient;
}

void StepAssembler::arrive(ParameterId parameter) {
  // Only when the last layer that uses the parameter is through, frozen ones included:
  // their backward still reads the old value.
  ParameterState& state = parameters_[parameter.index()];
  const bool at_once = step_.options.optimizer.clip_norm == 0 && step_.options.part == Part::whole;
  if (++state.arrived == state.expected && state.gradient.valid() && at_once) update(parameter, TensorId());
}

void StepAssembler::backward(LayerId id) {
  const Layer& current = layer(id);
  if (current.kind == LayerKind::input) return;
  if (!needs_[id.index()] && !superneurons()) return;
  if (current.kind == LayerKind::softmax_cross_entropy) return backward_loss(id);
  if (current.kind == LayerKind::split || current.kind == LayerKind::fork) return backward_branches(id);

  const TensorId dy = chunk_->gradients[flat({id, 0})];
  switch (current.kind) {
    case LayerKind::convolution:
    case LayerKind::transposed_convolution:
    case LayerKind::fully_connected: return backward_weighted(id, dy);
    case LayerKind::batch_norm: return backward_batch_norm(id, dy);
    case LayerKind::relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::lrn:
    case LayerKind::dropout: return backward_elementwise(id, dy);
    case LayerKind::max_pool:
    case LayerKind::average_pool:
    case LayerKind::global_average_pool: return backward_pool(id, dy);
    case LayerKind::add: return backward_add(id, dy);
    case LayerKind::multiply: return backward_multiply(id, dy);
    case LayerKind::concat: return backward_concat(id, dy);
    case LayerKind::flatten: return contribute(current.inputs[0], dy, id);
    case LayerKind::input:
    case LayerKind::softmax_cross_entropy:
    case LayerKind::split:
    case LayerKind::fork: return;
  }
}

void StepAssembler::backward_loss(LayerId id) {
  const Value input = layer(id).inputs[0];
  if (!needs_gradient(input)) return;
  const TensorId y = output_tensor(id);
  const StorageId own = superneurons() ? storage_of(y) : StorageId();
  const TensorId dx = new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx, 0, own);
  std::vector<NewOperand> operands{{Role::y, y}};
  if (superneurons()) operands.push_back({Role::x, value_tensor(input)});
  operands.push_back({Role::labels, chunk_->labels});
  operands.push_back({Role::dx, dx, Access::write});
  new_task(TaskKind::backward, id, backward_step(id), operands);
  allow_in_place(Role::y, Role::dx);
  contribute(input, dx, id);
}

void StepAssembler::backward_weighted(LayerId id, TensorId dy) {
  const Layer& current = layer(id);
  const Value input = current.inputs[0];
  const TensorId x = value_tensor(input);
  const bool makes_dx = needs_gradient(input);
  TensorId dx;

  const auto data = [&] {
    if (!makes_dx) return;
    dx = new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx);
    new_task(TaskKind::backward_data, id, backward_step(id),
             {{Role::weight, parameters_[current.parameters[0].index()].value},
              {Role::dy, dy},
              {Role::dx, dx, Access::write}});
  };
  const auto weights = [&] {
    if (!trains(current)) return;
    std::vector<NewOperand> operands{{Role::x, x}, {Role::dy, dy}};
    for (std::size_t k = 0; k < current.parameters.size(); ++k) {
      const Role role = k == 0 ? Role::d_weight : Role::d_bias;
      Access access{};
      const TensorId gradient = parameter_gradient(current.parameters[k], role, id, access);
      operands.push_back({role, gradient, access});
    }
    new_task(TaskKind::backward_weights, id, backward_step(id), operands);
  };

  // Whichever goes first keeps the other's operand alive: weights first holds d_weight,
  // data first holds x. The paper counts x, dy and dx together, which is data first.
  const Bytes x_bytes = step_.storage(storage_of(x)).bytes;
  const Bytes weight_bytes = bytes_of(network_->parameters[current.parameters[0].index()].shape, DataType::f32);
  if (superneurons() || weight_bytes > x_bytes) {
    data();
    weights();
  } else {
    weights();
    data();
  }
  // Updates first: they free the gradients before a sum may need room.
  for (const ParameterId parameter : current.parameters) arrive(parameter);
  // The input batch's own gradient (rules `superneurons`) is made, counted and used by nobody.
  if (makes_dx) contribute(input, dx, id);
}

void StepAssembler::backward_batch_norm(LayerId id, TensorId dy) {
  const Layer& current = layer(id);
  const Value input = current.inputs[0];
  const bool adds = current.inputs.size() == 2, relu = current.as<BatchNormOptions>().relu;
  const TensorId second_dy = chunk_->second_gradients[flat({id, 0})];
  std::vector<NewOperand> operands{{Role::x, value_tensor(input)}};
  // Where relu was 0 follows from y; without a second input, from x as well.
  if (relu && adds) operands.push_back({Role::y, output_tensor(id)});
  operands.push_back({Role::dy, dy});
  if (second_dy.valid()) operands.push_back({Role::dy, second_dy});
  operands.push_back({Role::weight, parameters_[current.parameters[0].index()].value});
  if (relu && !adds) operands.push_back({Role::bias, parameters_[current.parameters[1].index()].value});
  operands.push_back({Role::mean, saved_mean_[id.index()]});
  operands.push_back({Role::inverse_deviation, saved_deviation_[id.index()]});
  TensorId dx, second_dx;
  if (needs_gradient(input)) {
    dx = new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx);
    operands.push_back({Role::dx, dx, Access::write, 0});
  }
  if (adds && relu && needs_gradient(current.inputs[1])) {
    second_dx = new_tensor(TensorClass::activation_gradient, batch_shape(current.inputs[1]), id, Role::dx, 1);
    operands.push_back({Role::dx, second_dx, Access::write, 1});
  }
  if (trains(current)) {
    for (std::size_t k = 0; k < 2; ++k) {
      const Role role = k == 0 ? Role::d_weight : Role::d_bias;
      Access access{};
      const TensorId gradient = parameter_gradient(current.parameters[k], role, id, access);
      operands.push_back({role, gradient, access});
    }
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
  if (!relu && !second_dy.valid()) allow_in_place(Role::x, Role::dx);
  for (const ParameterId parameter : current.parameters) arrive(parameter);
  if (dx.valid()) contribute(input, dx, id);
  if (second_dx.valid()) contribute(current.inputs[1], second_dx, id);
  if (adds && !relu && needs_gradient(current.inputs[1])) contribute(current.inputs[1], dy, id);
}

void StepAssembler::backward_elementwise(LayerId id, TensorId dy) {
  const Layer& current = layer(id);
  const Value input = current.inputs[0];
  if (!needs_gradient(input)) return;
  const bool activation = current.kind != LayerKind::lrn && current.kind != LayerKind::dropout;
  const bool own_gradient = !superneurons() || current.kind == LayerKind::dropout;
  std::vector<NewOperand> operands;
  if (current.kind == LayerKind::lrn || (superneurons() && activation))
    operands.push_back({Role::x, value_tensor(input)});
  if (activation || (superneurons() && current.kind == LayerKind::lrn))
    operands.push_back({Role::y, output_tensor(id)});
  operands.push_back({Role::dy, dy});
  const TensorId dx = new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx, 0,
                                 own_gradient ? StorageId() : storage_of(dy));
  operands.push_back({Role::dx, dx, Access::write});
  new_task(TaskKind::backward, id, backward_step(id), operands);
  allow_in_place(Role::dy, Role::dx);
  if (activation) allow_in_place(Role::y, Role::dx);
  contribute(input, dx, id);
}

void StepAssembler::backward_pool(LayerId id, TensorId dy) {
  const Value input = layer(id).inputs[0];
  if (!needs_gradient(input)) return;
  std::vector<NewOperand> operands;
  if (superneurons()) {
    operands.push_back({Role::x, value_tensor(input)});
    operands.push_back({Role::y, output_tensor(id)});
  } else if (layer(id).kind == LayerKind::max_pool) {
    operands.push_back({Role::indices, chunk_->saved_indices[id.index()]});
  }
  const TensorId dx = new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx);
  operands.push_back({Role::dy, dy});
  operands.push_back({Role::dx, dx, Access::write});
  new_task(TaskKind::backward, id, backward_step(id), operands);
  contribute(input, dx, id);
}

void StepAssembler::backward_add(LayerId id, TensorId dy) {
  const Layer& current = layer(id);
  if (!superneurons()) {
    for (const Value& input : current.inputs)
      if (needs_gradient(input)) contribute(input, dy, id);
    return;
  }
  // The paper's JOIN hands dy on to its first input and copies it for the others.
  std::vector<NewOperand> operands{{Role::dy, dy}};
  std::vector<TensorId> gradients;
  for (std::size_t i = 0; i < current.inputs.size(); ++i) {
    gradients.push_back(new_tensor(TensorClass::activation_gradient, batch_shape(current.inputs[i]), id, Role::dx,
                                   static_cast<std::int32_t>(i), i == 0 ? storage_of(dy) : StorageId()));
    operands.push_back({Role::dx, gradients.back(), Access::write, static_cast<std::int16_t>(i)});
  }
  new_task(TaskKind::backward, id, backward_step(id), operands);
  allow_in_place(Role::dy, Role::dx);
  for (std::size_t i = 0; i < current.inputs.size(); ++i) contribute(current.inputs[i], gradients[i], id);
}

void StepAssembler::backward_multiply(LayerId id, TensorId dy) {
  const Layer& current = layer(id);
  std::vector<NewOperand> operands{{Role::x, value_tensor(current.inputs[0]), Access::read, 0},
                                   {Role::x, value_tensor(current.inputs[1]), Access::read, 1},
                                   {Role::dy, dy}};
  std::vector<TensorId> gradients(2);
  for (std::int16_t i = 0; i < 2; ++i) {
    const Value input = current.inputs[static_cast<std::size_t>(i)];
    if (!needs_gradient(input)) continue;
    gradients[static_cast<std::size_t>(i)] =
        new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx, i);
    operands.push_back({Role::dx, gradients[static_cast<std::size_t>(i)], Access::write, i});
  }
  new_task(TaskKind::backward, id, backward_step(id), operands);
  allow_in_place(Role::dy, Role::dx);
  allow_in_place(Role::x, Role::dx);
  for (std::size_t i = 0; i < 2; ++i)
    if (gradients[i].valid()) contribute(current.inputs[i], gradients[i], id);
}

void StepAssembler::backward_concat(LayerId id, TensorId dy) {
  const Layer& current = layer(id);
  std::vector<NewOperand> operands{{Role::dy, dy}};
  std::vector<TensorId> gradients(current.inputs.size());
  for (std::size_t i = 0; i < current.inputs.size(); ++i) {
    if (!needs_gradient(current.inputs[i])) continue;
    gradients[i] = new_tensor(TensorClass::activation_gradient, batch_shape(current.inputs[i]), id, Role::dx,
                              static_cast<std::int32_t>(i));
    operands.push_back({Role::dx, gradients[i], Access::write, static_cast<std::int16_t>(i)});
  }
  new_task(TaskKind::backward, id, backward_step(id), operands);
  for (std::size_t i = 0; i < current.inputs.size(); ++i)
    if (gradients[i].valid()) contribute(current.inputs[i], gradients[i], id);
}

void StepAssembler::backward_branches(LayerId id) {
  const Layer& current = layer(id);
  const Value input = current.inputs[0];
  if (!needs_gradient(input)) return;
  std::vector<NewOperand> operands;
  for (std::size_t o = 0; o < current.outputs.size(); ++o)
    operands.push_back({Role::dy, chunk_->gradients[flat({id, static_cast<std::int32_t>(o)})], Access::read,
                        static_cast<std::int16_t>(o)});
  // The paper's FORK sums into the gradient of its first branch.
  const StorageId first = current.kind == LayerKind::fork ? storage_of(operands[0].tensor) : StorageId();
  const TensorId dx = new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx, 0, first);
  operands.push_back({Role::dx, dx, Access::write});
  new_task(TaskKind::backward, id, backward_step(id), operands);
  if (current.kind == LayerKind::fork) allow_in_place(Role::dy, Role::dx);
  contribute(input, dx, id);
}

}  // namespace tide
