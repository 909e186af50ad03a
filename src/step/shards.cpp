// State that is divided over the ranks, bucket by bucket (buckets.h): each rank updates its share of the parameters
// with its share of the sums, for which it needs no more than its share of the optimizer's state.
//
//   Shard::optimizer    all parameters stay on each rank: behind the updates the shares are gathered
//   Shard::parameters   each rank keeps its share; before a pass comes to a bucket, its parameters are gathered, one
//                       bucket ahead, and are gone behind their last use in that pass
//
// What is gathered when follows from the network alone, as with sums: it is the same on all ranks whatever their plans.
#include <algorithm>

#include "step/assembler.h"
#include "step/buckets.h"

namespace tide {

TensorId StepAssembler::new_share(const Bucket& bucket, TensorClass tensor_class, Role role) {
  const std::int64_t floats = bucket.bytes.count() / element_bytes(DataType::f32);
  return new_tensor(tensor_class, Shape{floats / step_.options.ranks.count}, LayerId(), role,
                    share_index(number_of(bucket)));
}

TensorId StepAssembler::new_values(const Bucket& bucket) {
  return new_tensor(TensorClass::parameter, Shape{bucket.bytes.count() / element_bytes(DataType::f32)}, LayerId(),
                    Role::weight, number_of(bucket));
}

void StepAssembler::make_sharded_state(Bucket& bucket) {
  const auto persists = [&](TensorId tensor) {
    Storage& storage = step_.storages[storage_of(tensor).index()];
    storage.persistent = true;
    storage.entry = storage.exit = tensor;
    return tensor;
  };
  if (gathers_parameters())
    bucket.value_share = persists(new_share(bucket, TensorClass::parameter, Role::weight));
  else
    bucket.values = persists(new_values(bucket));
  for (const ParameterId id : bucket.parameters) {
    parameters_[id.index()].in_bucket = true;
    parameters_[id.index()].value = bucket.values;
  }
  const OptimizerKind optimizer = step_.options.optimizer.kind;
  if (optimizer == OptimizerKind::sgd) return;
  bucket.first_moment = persists(new_share(bucket, TensorClass::optimizer_state, Role::first_moment));
  if (optimizer == OptimizerKind::adam || optimizer == OptimizerKind::adamw)
    bucket.second_moment = persists(new_share(bucket, TensorClass::optimizer_state, Role::second_moment));
}

void StepAssembler::begin_pass(bool forward) {
  forward_ = forward;
  if (!gathers_parameters()) return;
  for (Bucket& bucket : buckets_) {
    if (bucket.sharded) bucket.values = TensorId();
    bucket.read_in_pass = false;
  }
  for (std::size_t l = 0; l < network_->layers.size(); ++l)
    if (reads_parameters(LayerId(l)))
      for (const LayerParameter& parameter : network_->layers[l].parameters)
        if (parameters_[parameter.id.index()].in_bucket)
          buckets_[parameters_[parameter.id.index()].bucket].read_in_pass = true;
}

bool StepAssembler::reads_parameters(LayerId id) const {
  if (forward_ || layer(id).parameters.empty()) return forward_;
  if (!needs_[id.index()]) return false;
  const KindDescription& kind = kind_of(id);
  const auto reads = [&](const TaskTable& table) {
    return std::ranges::any_of(table.operands, [&](const OperandRow& row) {
      return row.access == Access::read && (row.role == Role::weight || row.role == Role::bias) &&
             applies(row.when, id);
    });
  };
  const bool spreads = std::ranges::any_of(layer(id).inputs, [&](Value input) { return needs_gradient(input); });
  return reads(kind.backward) || (reads(kind.backward_data) && spreads) || reads(kind.backward_weights);
}

void StepAssembler::fetch_parameters(LayerId id) {
  if (!gathers_parameters() || !reads_parameters(id)) return;
  for (const LayerParameter& parameter : layer(id).parameters) {
    const ParameterState& state = parameters_[parameter.id.index()];
    if (!state.in_bucket) continue;
    fetch_bucket(state.bucket);
    // The one that comes next: from the last to the first in the forward pass.
    const std::size_t next = forward_ ? state.bucket - 1 : state.bucket + 1;
    if (next < buckets_.size() && buckets_[next].sharded && buckets_[next].read_in_pass) fetch_bucket(next);
  }
}

void StepAssembler::fetch_bucket(std::size_t index) {
  Bucket& bucket = buckets_[index];
  if (bucket.values.valid()) return;
  bucket.values = new_values(bucket);
  new_task(TaskKind::gather, parameters_[bucket.parameters.back().index()].layer, 0,
           {{Role::weight, bucket.value_share}, {Role::weight, bucket.values, Access::write}});
  for (const ParameterId id : bucket.parameters) parameters_[id.index()].value = bucket.values;
}

void StepAssembler::scatter(Bucket& bucket) {
  bucket.gradient_share = new_share(bucket, TensorClass::parameter_gradient, Role::gradient);
  new_task(TaskKind::scatter, parameters_[bucket.parameters.back().index()].layer, 0,
           {{Role::gradient, bucket.tensor}, {Role::gradient, bucket.gradient_share, Access::write}});
}

void StepAssembler::update_share(Bucket& bucket, TensorId norm) {
  std::vector<NewOperand> operands{{Role::gradient, bucket.gradient_share}};
  if (norm.valid()) operands.push_back({Role::norm, norm});
  if (gathers_parameters()) {
    operands.push_back({Role::weight, bucket.value_share});
  } else {
    step_.views.push_back({.shape = step_.tensor(bucket.gradient_share).shape,
                           .order = MemoryOrder::row_major(1),
                           .offset = {},
                           .bucket = number_of(bucket),
                           .own = true});
    operands.push_back({Role::weight, bucket.values, Access::read, 0, ViewId(step_.views.size() - 1)});
  }
  const auto add_moments = [&](Access access) {
    for (const auto& [role, tensor] :
         {std::pair(Role::first_moment, bucket.first_moment), std::pair(Role::second_moment, bucket.second_moment)})
      if (tensor.valid()) operands.push_back({role, access == Access::read ? tensor : successor(tensor), access});
  };
  add_moments(Access::read);
  bucket.value_share =
      gathers_parameters() ? successor(bucket.value_share) : new_share(bucket, TensorClass::parameter, Role::weight);
  operands.push_back({Role::weight, bucket.value_share, Access::write});
  add_moments(Access::write);
  new_task(TaskKind::update, parameters_[bucket.parameters.back().index()].layer, 0, operands);
  declare_in_place();
}

void StepAssembler::gather_updated() {
  if (!shards() || gathers_parameters()) return;
  for (Bucket& bucket : buckets_) {
    if (!bucket.sharded) continue;
    bucket.values = successor(bucket.values);
    new_task(TaskKind::gather, parameters_[bucket.parameters.back().index()].layer, 0,
             {{Role::weight, bucket.value_share}, {Role::weight, bucket.values, Access::write}});
  }
}

TensorId StepAssembler::sum_over_ranks(TensorId norm) {
  const TensorId sum = successor(norm);
  new_task(TaskKind::reduce, LayerId(0), 0, {{Role::norm, norm}, {Role::norm, sum, Access::write}});
  declare_in_place();
  return sum;
}

}  // namespace tide
