// Sums over samples in an order that no number of ranks changes (RankOptions::parts): each part of the global batch
// goes through the step by itself, and what it adds to a sum meets that of the others in one binary tree.
//
//   gradients    leaves in pairs, pairs of pairs, ...; what is left goes on over the ranks (tree_all_reduce)
//   statistics   of each part, for all ranks to see: gathered, then put together by everybody alike
#include <bit>

#include "step/assembler.h"

namespace tide {

NewOperand StepAssembler::leaf_gradient(ParameterId parameter, Role role, LayerId id) {
  ParameterState& state = parameters_[parameter.index()];
  state.leaves.resize(chunks_.size());
  Leaf& leaf = state.leaves[chunk_index()];
  const Access access = leaf.tensor.valid() ? Access::accumulate : Access::write;
  if (!leaf.tensor.valid()) {
    const Shape& shape = network_->parameters[parameter.index()].shape;
    leaf.tensor =
        new_tensor(TensorClass::parameter_gradient, shape, id, role, static_cast<std::int32_t>(chunk_index()));
    step_.tensors.back().parameter = parameter;
  }
  return {role, leaf.tensor, access};
}

NewOperand StepAssembler::whole_gradient(ParameterId parameter, Role role, LayerId id) {
  if (is_shared()) return bucket_part(parameter, role);
  ParameterState& state = parameters_[parameter.index()];
  const Access access = state.written ? Access::accumulate : Access::write;
  state.written = true;
  if (!state.gradient.valid()) {
    const Shape& shape = network_->parameters[parameter.index()].shape;
    state.gradient = new_tensor(TensorClass::parameter_gradient, shape, id, role);
    step_.tensors.back().parameter = parameter;
  }
  return {role, state.gradient, access};
}

void StepAssembler::arrive_at_leaf(ParameterId parameter) {
  ParameterState& state = parameters_[parameter.index()];
  // A frozen layer that shares the parameter may come first, before any leaf is made; it counts as well.
  state.leaves.resize(chunks_.size());
  Leaf& leaf = state.leaves[chunk_index()];
  const auto each = state.expected / static_cast<std::int32_t>(chunks_.size());
  // Statistics of batch norms are not made leaf by leaf.
  if (++leaf.arrived == each && leaf.tensor.valid()) add_to_tree(parameter, 0, chunk_index(), leaf.tensor);
}

// A node of the tree is there: if its sibling is as well, so is their parent.
void StepAssembler::add_to_tree(ParameterId parameter, int level, std::size_t index, TensorId tensor) {
  ParameterState& state = parameters_[parameter.index()];
  TensorId& waiting = state.tree[{level, index / 2}];
  if (!waiting.valid()) {
    waiting = tensor;
    return;
  }
  const bool left = index % 2 == 0;
  const bool last = (std::size_t{2} << level) == chunks_.size();
  const Role role = step_.tensor(tensor).role;
  const LayerId id = step_.tensor(tensor).layer;
  const auto node = static_cast<std::int32_t>(index / 2);
  NewOperand sum{Role::y, {}, Access::write};
  if (last) {
    const NewOperand whole = whole_gradient(parameter, role, id);
    sum = {Role::y, whole.tensor, whole.access, 0, whole.view};
  } else {
    const Shape& shape = network_->parameters[parameter.index()].shape;
    sum.tensor = new_tensor(TensorClass::parameter_gradient, shape, id, role, node);
    step_.tensors.back().parameter = parameter;
  }
  new_task(
      TaskKind::sum_gradients, id, backward_step(id),
      {{Role::x, left ? tensor : waiting, Access::read, 0}, {Role::x, left ? waiting : tensor, Access::read, 1}, sum});
  if (!sum.view.valid()) allow_in_place(Role::x, Role::y);
  if (!last) add_to_tree(parameter, level + 1, index / 2, sum.tensor);
}

TensorId StepAssembler::new_moments(LayerId id, std::int64_t parts) {
  const std::int64_t channels = network_->shape(layer(id).inputs[0]).channels();
  return new_tensor(TensorClass::saved_state, Shape{checked_multiply(parts, 2 * channels)}, id, Role::moments);
}

// `count` of the 2 * channels numbers of this rank's chunk, from `first` on.
NewOperand StepAssembler::moments_row(LayerId id, Role role, std::int64_t first, std::int64_t count) {
  Moments& moments = moments_[id.index()];
  const std::int64_t channels = network_->shape(layer(id).inputs[0]).channels();
  if (!moments.own.valid()) moments = {new_moments(id, static_cast<std::int64_t>(chunks_.size())), 0};
  const std::int64_t at = static_cast<std::int64_t>(chunk_index()) * 2 * channels + first;
  step_.views.push_back({Shape{count}, MemoryOrder::row_major(1), Bytes(at * element_bytes(DataType::f32)), {}, {}});
  const std::size_t task = step_.tasks.size() + 1;
  if (moments.begun_by == 0) moments.begun_by = task;
  return {role, moments.own, moments.begun_by == task ? Access::write : Access::accumulate, 0,
          ViewId(step_.views.size() - 1)};
}

// Those of all parts, from those of this rank's.
TensorId StepAssembler::gather_moments(LayerId id) {
  const TensorId own = moments_[id.index()].own;
  if (step_.options.ranks.count == 1) return own;
  const TensorId all = new_moments(id, step_.options.ranks.parts);
  new_task(TaskKind::gather, id, 0, {{Role::moments, own}, {Role::moments, all, Access::write}});
  return all;
}

void StepAssembler::part_statistics(LayerId id) {
  if (chunk_ == &chunks_.front()) {
    moments_[id.index()] = {};
    for (const Role role : {Role::mean, Role::inverse_deviation}) save(id, role);
    for (Chunk& chunk : chunks_) chunk.saved[id.index()] = chunk_->saved[id.index()];
  }
  const Value input = layer(id).inputs[0];
  new_task(TaskKind::forward, id, number_[id.index()],
           {{Role::x, value_tensor(input)}, moments_row(id, Role::moments, 0, 2 * network_->shape(input).channels())});
}

void StepAssembler::finish_statistics(LayerId id) {
  const TensorId all = gather_moments(id);
  const TensorId old_mean = running(id, Role::running_mean), old_variance = running(id, Role::running_variance);
  new_task(TaskKind::forward, id, number_[id.index()],
           {{Role::moments, all},
            {Role::running_mean, old_mean},
            {Role::running_variance, old_variance},
            {Role::mean, saved(id, Role::mean), Access::write},
            {Role::inverse_deviation, saved(id, Role::inverse_deviation), Access::write},
            {Role::running_mean, successor(old_mean), Access::write},
            {Role::running_variance, successor(old_variance), Access::write}});
  allow_in_place(Role::running_mean, Role::running_mean);
  allow_in_place(Role::running_variance, Role::running_variance);
}

void StepAssembler::part_sums(LayerId id) {
  if (!needs_[id.index()]) return;
  fetch_parameters(id);
  const Layer& current = layer(id);
  if (chunk_ == &chunks_.back()) moments_[id.index()] = {};  // the last chunk comes first
  const std::int64_t channels = network_->shape(current.inputs[0]).channels();
  new_task(TaskKind::backward, id, backward_step(id),
           {{Role::x, value_tensor(current.inputs[0])},
            {Role::dy, chunk_->gradients[flat({id, 0})]},
            parameter_value(id, ParameterRole::scale),
            {Role::mean, saved(id, Role::mean)},
            {Role::inverse_deviation, saved(id, Role::inverse_deviation)},
            moments_row(id, Role::d_weight, 0, channels),
            moments_row(id, Role::d_bias, channels, channels)});
  const bool spreads = needs_gradient(current.inputs[0]);
  if (chunk_ == &chunks_.front()) finish_sums(id, spreads);
  if (!spreads)
    for (const LayerParameter& parameter : current.parameters) arrive(parameter.id);
}

void StepAssembler::finish_sums(LayerId id, bool spreads) {
  const Layer& current = layer(id);
  if (trains(current)) {
    std::vector<NewOperand> operands{{Role::moments, moments_[id.index()].own}};
    for (const LayerParameter& parameter : current.parameters) {
      if (parameters_[parameter.id.index()].expected != static_cast<std::int32_t>(chunks_.size()))
        throw Error("{} shares its parameters with another batch norm, whose sums have no fixed order", current.name);
      operands.push_back(whole_gradient(parameter.id, gradient_role(parameter.role), id));
    }
    new_task(TaskKind::backward, id, backward_step(id), operands);
  }
  if (!spreads) return;
  std::vector<NewOperand> operands{{Role::moments, gather_moments(id)}};
  for (const LayerParameter& parameter : current.parameters) {
    const Role role = gradient_role(parameter.role);
    TensorId& sum = parameter.role == ParameterRole::scale ? scale_sums_[id.index()] : shift_sums_[id.index()];
    sum = new_tensor(TensorClass::saved_state, network_->parameters[parameter.id.index()].shape, id, role);
    operands.push_back({role, sum, Access::write});
  }
  new_task(TaskKind::backward, id, backward_step(id), operands);
}

}  // namespace tide
