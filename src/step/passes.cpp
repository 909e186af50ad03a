// In which order the passes go through layers and samples.
//
// Whole: all layers forward, all layers backward, each over all samples.
//
// Exact batch norm over sub-batches: the network is cut at its batch norms, and each segment goes
// through all sub-batches before the next begins, because a batch norm needs the statistics of
// all samples. Behind a segment's sub-batch come the statistics of the batch norms that end it, added
// to those of the sub-batches before; the segments behind normalize with them. Backward likewise:
// sums of all sub-batches first, then what each makes of them.
//
//   conv1       conv1       | norm1 conv2       norm1 conv2       | norm2 ...
//   statistics1 statistics1 |       statistics2       statistics2 |
//   sub-batch 1 sub-batch 2 | sub-batch 1       sub-batch 2       | ...
#include <algorithm>

#include "step/assembler.h"

namespace tide {

void StepAssembler::run_whole(const std::vector<LayerId>& order) {
  begin_pass(true);
  for (const LayerId id : order) forward(id);
  if (!step_.options.training) return;
  begin_pass(false);
  for (auto it = order.rbegin(); it != order.rend(); ++it) backward(*it);
}

void StepAssembler::run_exact(const std::vector<LayerId>& order) {
  find_levels(order);
  const auto norms_behind = [&](LayerId id, std::int32_t level) {
    return mixes_samples(id) && level_[id.index()] == level + 1;
  };
  begin_pass(true);
  const std::int32_t last = *std::max_element(level_.begin(), level_.end());
  for (std::int32_t level = 0; level <= last; ++level) {
    for (Chunk& chunk : chunks_) {
      chunk_ = &chunk;
      for (const LayerId id : order)
        if (level_[id.index()] == level) forward(id);
      for (const LayerId id : order)
        if (norms_behind(id, level)) in_parts() ? part_statistics(id) : forward_statistics(id);
    }
    chunk_ = &chunks_.front();
    for (const LayerId id : order)
      if (in_parts() && norms_behind(id, level)) finish_statistics(id);
  }
  begin_pass(false);
  for (std::int32_t level = last; level >= 0; --level) {
    // The newest first: its values are the most likely to be at hand.
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
      chunk_ = &*chunk;
      for (auto it = order.rbegin(); it != order.rend(); ++it)
        if (norms_behind(*it, level)) backward_spread(*it);
      for (auto it = order.rbegin(); it != order.rend(); ++it) {
        if (level_[it->index()] != level) continue;
        if (mixes_samples(*it))
          in_parts() ? part_sums(*it) : backward_sums(*it);
        else
          backward(*it);
      }
    }
  }
  chunk_ = &chunks_.front();
}

void StepAssembler::find_levels(const std::vector<LayerId>& order) {
  level_.assign(network_->layers.size(), 0);
  scale_sums_.resize(network_->layers.size());
  shift_sums_.resize(network_->layers.size());
  moments_.resize(network_->layers.size());
  for (const LayerId id : order) {
    const Layer& current = layer(id);
    const bool norm = mixes_samples(id);
    for (const Value& input : current.inputs)
      level_[id.index()] = std::max(level_[id.index()], level_[input.layer.index()] + (norm ? 1 : 0));
  }
  // Every sub-batch contributes.
  for (ParameterState& state : parameters_) state.expected *= static_cast<std::int32_t>(chunks_.size());
}

void StepAssembler::forward_statistics(LayerId id) {
  const Layer& current = layer(id);
  const bool first = chunk_ == &chunks_.front();
  if (first) {
    for (const Role role : {Role::mean, Role::inverse_deviation}) save(id, role);
    // Of all samples.
    for (Chunk& chunk : chunks_) chunk.saved[id.index()] = chunk_->saved[id.index()];
  }
  const TensorId old_mean = running(id, Role::running_mean), old_variance = running(id, Role::running_variance);
  std::vector<NewOperand> operands{{Role::x, value_tensor(current.inputs[0])}};
  if (is_last_chunk())
    operands.insert(operands.end(), {{Role::running_mean, old_mean}, {Role::running_variance, old_variance}});
  const Access access = first ? Access::write : Access::accumulate;
  operands.push_back({Role::mean, saved(id, Role::mean), access});
  operands.push_back({Role::inverse_deviation, saved(id, Role::inverse_deviation), access});
  if (is_last_chunk()) {
    operands.push_back({Role::running_mean, successor(old_mean), Access::write});
    operands.push_back({Role::running_variance, successor(old_variance), Access::write});
  }
  new_task(TaskKind::forward, id, number_[id.index()], operands);
  if (!is_last_chunk()) return;
  allow_in_place(Role::running_mean, Role::running_mean);
  allow_in_place(Role::running_variance, Role::running_variance);
}

void StepAssembler::forward_normalize(LayerId id) {
  const Layer& current = layer(id);
  new_task(TaskKind::forward, id, number_[id.index()],
           {{Role::x, value_tensor(current.inputs[0])},
            parameter_value(id, ParameterRole::scale),
            parameter_value(id, ParameterRole::shift),
            {Role::mean, saved(id, Role::mean)},
            {Role::inverse_deviation, saved(id, Role::inverse_deviation)},
            {Role::y, output_tensor(id), Access::write}});
  allow_in_place(Role::x, Role::y);
}

// The gradients of scale and shift are also what the input's gradient needs of the other samples; unless other
// layers add to them too, or nobody asked for them, and the sums are apart.
void StepAssembler::backward_sums(LayerId id) {
  if (!needs_[id.index()]) return;
  fetch_parameters(id);
  const Layer& current = layer(id);
  const auto sum_into = [&](auto target_of) {
    std::vector<NewOperand> operands{{Role::x, value_tensor(current.inputs[0])},
                                     {Role::dy, chunk_->gradients[flat({id, 0})]},
                                     parameter_value(id, ParameterRole::scale),
                                     {Role::mean, saved(id, Role::mean)},
                                     {Role::inverse_deviation, saved(id, Role::inverse_deviation)}};
    for (const LayerParameter& parameter : current.parameters) operands.push_back(target_of(parameter));
    new_task(TaskKind::backward, id, backward_step(id), operands);
  };
  const auto gradient = [&](const LayerParameter& parameter) {
    return parameter_gradient(parameter.id, gradient_role(parameter.role), id);
  };
  const auto sums = [&](ParameterRole role) -> TensorId& {
    return role == ParameterRole::scale ? scale_sums_[id.index()] : shift_sums_[id.index()];
  };
  const bool spreads = needs_gradient(current.inputs[0]);
  // In a bucket they are complete only with those of other layers.
  const bool alone = !is_shared() && parameters_[current.parameters[0].id.index()].expected ==
                                         static_cast<std::int32_t>(chunks_.size());
  if (trains(current)) sum_into(gradient);
  if (trains(current) && alone) {
    for (const auto& [role, parameter] : current.parameters) sums(role) = parameters_[parameter.index()].gradient;
  } else if (spreads) {
    sum_into([&](const LayerParameter& parameter) {
      const Role role = gradient_role(parameter.role);
      TensorId& sum = sums(parameter.role);
      const Access access = sum.valid() ? Access::accumulate : Access::write;
      if (!sum.valid())
        sum = new_tensor(TensorClass::saved_state, network_->parameters[parameter.id.index()].shape, id, role);
      return NewOperand{role, sum, access};
    });
  }
  if (!spreads)
    for (const LayerParameter& parameter : current.parameters) arrive(parameter.id);
}

void StepAssembler::backward_spread(LayerId id) {
  const Layer& current = layer(id);
  const Value input = current.inputs[0];
  if (!needs_[id.index()] || !needs_gradient(input)) return;
  const TensorId dx = new_tensor(TensorClass::activation_gradient, batch_shape(input), id, Role::dx);
  new_task(TaskKind::backward, id, backward_step(id),
           {{Role::x, value_tensor(input)},
            {Role::dy, chunk_->gradients[flat({id, 0})]},
            parameter_value(id, ParameterRole::scale),
            {Role::mean, saved(id, Role::mean)},
            {Role::inverse_deviation, saved(id, Role::inverse_deviation)},
            {Role::d_weight, scale_sums_[id.index()]},
            {Role::d_bias, shift_sums_[id.index()]},
            {Role::dx, dx, Access::write}});
  allow_in_place(Role::dy, Role::dx);
  allow_in_place(Role::x, Role::dx);
  for (const LayerParameter& parameter : current.parameters) arrive(parameter.id);
  contribute(input, dx, id);
}

}  // namespace tide
