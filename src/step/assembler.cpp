#include "step/assembler.h"

#include <algorithm>
#include <bit>
#include <map>

#include "step/fuse.h"

namespace tide {

namespace {

// Parts of the global batch are sub-batches of the ranks' own; without gradients samples do not meet.
StepOptions with_parts(StepOptions options) {
  if (!options.training) options.ranks.parts = 0;
  if (options.ranks.parts > 0 && options.sub_batch == 0)
    options.sub_batch = checked_multiply(options.batch, options.ranks.count) / options.ranks.parts;
  return options;
}

}  // namespace

StepAssembler::StepAssembler(NetworkPtr network, const StepOptions& given) : network_(std::move(network)) {
  const StepOptions options = with_parts(given);
  if (options.batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", options.batch);
  if (options.batch > kMostSamples)
    throw Error("batch {} is too large: sizes would overflow; at most {} samples are possible", options.batch,
                kMostSamples);
  if (options.training && !network_->has_loss())
    throw Error("{} has no loss layer, so it cannot be trained; add softmax_cross_entropy or plan it with --inference",
                network_->name);
  if (!options.training && options.part != Part::whole)
    throw Error("a step that does not train has no gradients to add up in rounds");
  if (options.sub_batch < 0) throw Error("sub-batches of {} samples are not possible", options.sub_batch);
  if (options.sub_batch > 0 && (!options.training || options.part != Part::whole || options.rules != Rules::minimal))
    throw Error("exact batch norm over sub-batches is for whole training steps under the rules minimal");
  if (options.rules == Rules::superneurons && options.fuse)
    throw Error(
        "layers are not fused under the rules superneurons, which count them one by one; use the rules minimal");
  if (options.ranks.count < 1) throw Error("{} ranks are not possible", options.ranks.count);
  if (options.ranks.parts > 0) {
    const std::int64_t all = checked_multiply(options.batch, options.ranks.count), parts = options.ranks.parts;
    if (parts % options.ranks.count != 0 || all % parts != 0 ||
        !std::has_single_bit(static_cast<std::uint64_t>(parts / options.ranks.count)))
      throw Error("{} samples on {} ranks cannot be cut into {} equal parts, 1, 2, 4 ... on each", all,
                  options.ranks.count, parts);
    if (options.sub_batch != 0 && options.sub_batch != all / parts)
      throw Error("a batch that is cut into {} parts cannot be cut into others", parts);
  }
  if (options.ranks.shard != Shard::none && options.rules != Rules::minimal)
    throw Error("state is divided over ranks under the rules minimal");
  if (options.ranks.shard != Shard::none)
    for (const Parameter& parameter : network_->parameters)
      if (parameter.rate != 1 || parameter.decay != 1)
        throw Error(
            "parameter '{}' is trained at a rate or decay of its own, which those of a shard cannot be; leave out "
            "--shard, or --rate and --decay-weights-only",
            parameter.name);
  if (options.ranks.shard != Shard::none && options.ranks.parts > 0 && options.optimizer.clip_norm > 0)
    throw Error("clipping sums over the shares of all ranks, which has no fixed order; clip without shards");
  if (options.ranks.bucket.count() < 1) throw Error("a bucket has at least 1 byte");
  if (options.activations != DataType::f32 && options.activations != DataType::bf16)
    throw Error("layer outputs are stored as fp32 or bf16");
  if (options.rules == Rules::superneurons) network_ = std::make_shared<Network>(insert_forks(*network_));
  const bool fuse = options.fuse && options.sub_batch == 0;
  if (fuse)
    network_ =
        std::make_shared<Network>(fuse_layers(*network_, options.batch, options.activations, options.fuse_limit));
  step_.network = network_;
  step_.options = options;
  step_.options.fuse = fuse;
  step_.model = network_->name;
  step_.algorithm_sets.push_back({Algorithm{"default", Bytes{}}});
  for (const Layer& layer : network_->layers) {
    step_.layer_names.push_back(layer.name);
    step_.layer_kinds.push_back(layer.kind);
    first_value_.push_back(value_count_);
    value_count_ += layer.outputs.size();
  }
  const std::size_t layers = network_->layers.size();
  number_.resize(layers, 0);
  needs_.resize(layers, false);
  make_chunks();
  metrics_.resize(layers * chunks_.size());
  statistics_.resize(layers);

  const std::vector<LayerId> order = execution_order(*network_);
  for (const LayerId id : order)
    if (kind_of(id).numbered) number_[id.index()] = ++step_.layer_steps;
  if (is_shared() || shards()) make_buckets();
  make_persistent_tensors();
  find_gradient_needs();
  if (options.part != Part::whole) make_persistent_gradients();
  if (options.part == Part::update) {
    update_all();
  } else {
    if (is_exact())
      run_exact(order);
    else
      run_whole(order);
    if (options.training && options.part == Part::whole) {
      if (options.optimizer.clip_norm > 0 || is_shared()) update_all();
      update_together(TensorId());
    }
  }
  step_.ordered_tasks = static_cast<std::uint32_t>(step_.tasks.size());
  if (options.keep_results) keep_results();
  make_replays();
}

Step StepAssembler::finish() && { return std::move(step_); }

StorageId StepAssembler::new_storage(Bytes bytes, TensorClass tensor_class) {
  step_.storages.push_back(
      Storage{.bytes = bytes, .tensor_class = tensor_class, .persistent = false, .entry = {}, .exit = {}});
  return StorageId(step_.storages.size() - 1);
}

TensorId StepAssembler::new_tensor(TensorClass tensor_class, const Shape& shape, LayerId layer, Role role,
                                   std::int32_t index, StorageId storage, std::optional<DataType> wanted) {
  const bool data = tensor_class == TensorClass::activation || tensor_class == TensorClass::activation_gradient;
  const DataType type = wanted.value_or(data ? step_.options.activations : DataType::f32);
  if (!storage.valid()) storage = new_storage(bytes_of(shape, type), tensor_class);
  // Kernels that go along channels want them side by side; images come from the host that way too.
  const bool made = data || tensor_class == TensorClass::input || tensor_class == TensorClass::saved_state;
  step_.tensors.push_back(
      Tensor{.tensor_class = tensor_class,
             .type = type,
             .role = role,
             .order = made ? MemoryOrder::channels_last(shape.rank()) : MemoryOrder::row_major(shape.rank()),
             .index = index,
             .storage = storage,
             .layer = layer,
             .parameter = {},
             .shape = shape});
  return TensorId(step_.tensors.size() - 1);
}

TensorId StepAssembler::new_persistent(ParameterId parameter, TensorClass tensor_class, LayerId layer, Role role) {
  const Shape& shape = network_->parameters[parameter.index()].shape;
  const TensorId tensor = new_tensor(tensor_class, shape, layer, role);
  step_.tensors.back().parameter = parameter;
  Storage& storage = step_.storages[storage_of(tensor).index()];
  storage.persistent = true;
  storage.entry = storage.exit = tensor;
  return tensor;
}

TensorId StepAssembler::successor(TensorId old) {
  Tensor tensor = step_.tensor(old);
  step_.tensors.push_back(tensor);
  const TensorId result(step_.tensors.size() - 1);
  Storage& storage = step_.storages[tensor.storage.index()];
  if (storage.persistent) storage.exit = result;
  return result;
}

void StepAssembler::new_task(TaskKind kind, LayerId layer, std::int32_t number,
                             const std::vector<NewOperand>& operands) {
  Task task;
  task.kind = kind;
  task.layer = layer;
  task.step = number;
  task.first_sample = chunk_->first_sample;
  task.first_operand = static_cast<std::uint32_t>(step_.operands.size());
  task.operand_count = static_cast<std::uint32_t>(operands.size());
  for (const NewOperand& operand : operands)
    step_.operands.push_back(Operand{operand.role, operand.access, operand.index, operand.tensor, operand.view});
  task.first_in_place = static_cast<std::uint32_t>(step_.in_place.size());
  step_.tasks.push_back(task);
}

void StepAssembler::allow_in_place(Role source, Role target) {
  Task& task = step_.tasks.back();
  const auto operands = step_.operands_of(task);
  for (std::size_t t = 0; t < operands.size(); ++t) {
    if (operands[t].role != target || operands[t].access != Access::write) continue;
    for (std::size_t s = 0; s < operands.size(); ++s) {
      if (operands[s].role != source || operands[s].access != Access::read) continue;
      const bool one_storage = storage_of(operands[s].tensor) == storage_of(operands[t].tensor);
      // The paper's rules fix which results are in place; ours leave it to the planner.
      if (superneurons() && !one_storage) continue;
      const Tensor &from = step_.tensor(operands[s].tensor), &to = step_.tensor(operands[t].tensor);
      if (from.type != to.type || from.shape.elements() != to.shape.elements()) continue;
      step_.in_place.push_back({static_cast<std::int16_t>(s), static_cast<std::int16_t>(t)});
      ++task.in_place_count;
    }
  }
}

void StepAssembler::declare_in_place() {
  Task& task = step_.tasks.back();
  const auto operands = step_.operands_of(task);
  std::map<StorageId, std::int16_t> sources;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const StorageId storage = storage_of(operands[k].tensor);
    const auto position = static_cast<std::int16_t>(k);
    if (operands[k].access == Access::read)
      sources.emplace(storage, position);
    else if (const auto source = sources.find(storage); source != sources.end()) {
      step_.in_place.push_back({source->second, position});
      ++task.in_place_count;
    }
  }
}

void StepAssembler::make_chunks() {
  const std::int64_t batch = step_.options.batch;
  const std::int64_t samples = is_exact() ? std::min(step_.options.sub_batch, batch) : batch;
  for (std::int64_t first = 0; first < batch; first += samples) {
    Chunk chunk{.first_sample = first,
                .samples = std::min(samples, batch - first),
                .values = {},
                .gradients = {},
                .second_gradients = {},
                .saved = {},
                .labels = {}};
    chunk.values.resize(value_count_);
    chunk.gradients.resize(value_count_);
    chunk.second_gradients.resize(value_count_);
    chunk.saved.resize(network_->layers.size());
    chunks_.push_back(std::move(chunk));
  }
  chunk_ = &chunks_.front();
}

void StepAssembler::make_persistent_tensors() {
  parameters_.resize(network_->parameters.size());
  for (Bucket& bucket : buckets_)
    if (bucket.sharded) make_sharded_state(bucket);
  const OptimizerKind optimizer = step_.options.optimizer.kind;
  const bool adam = optimizer == OptimizerKind::adam || optimizer == OptimizerKind::adamw;
  for (std::size_t l = 0; l < network_->layers.size(); ++l) {
    const Layer& current = network_->layers[l];
    for (const auto& [role, id] : current.parameters) {
      ParameterState& state = parameters_[id.index()];
      if (state.layer.valid()) continue;  // shared, and made by an earlier layer
      state.layer = LayerId(l);
      if (state.in_bucket) continue;
      state.value = new_persistent(id, TensorClass::parameter, LayerId(l), operand_role(role));
      if (network_->parameters[id.index()].frozen || optimizer == OptimizerKind::sgd) continue;
      state.first_moment = new_persistent(id, TensorClass::optimizer_state, LayerId(l), Role::first_moment);
      if (adam) state.second_moment = new_persistent(id, TensorClass::optimizer_state, LayerId(l), Role::second_moment);
    }
    for (const auto& [role, id] : current.statistics)
      statistics_[l].push_back(
          {operand_role(role), new_persistent(id, TensorClass::running_statistics, LayerId(l), operand_role(role))});
  }
}

// What rounds add up and the update reads.
void StepAssembler::make_persistent_gradients() {
  if (is_shared()) {
    for (Bucket& bucket : buckets_) {
      make_bucket_tensor(bucket);
      Storage& storage = step_.storages[storage_of(bucket.tensor).index()];
      storage.persistent = true;
      storage.exit = bucket.tensor;
      if (step_.options.part != Part::first_round) storage.entry = bucket.tensor;
      for (const ParameterId id : bucket.parameters)
        parameters_[id.index()].written = step_.options.part == Part::later_round;
    }
    return;
  }
  for (const Layer& current : network_->layers) {
    if (!trains(current)) continue;
    for (const auto& [role, id] : current.parameters) {
      ParameterState& state = parameters_[id.index()];
      if (state.gradient.valid()) continue;
      state.gradient = new_persistent(id, TensorClass::parameter_gradient, state.layer, gradient_role(role));
      if (step_.options.part == Part::first_round) step_.storages.back().entry = TensorId();
      state.written = step_.options.part == Part::later_round;
    }
  }
}

void StepAssembler::find_gradient_needs() {
  for (std::size_t l = 0; l < network_->layers.size(); ++l) {
    const Layer& current = network_->layers[l];
    bool needs = trains(current);
    for (const Value& input : current.inputs) needs = needs || needs_[input.layer.index()];
    needs_[l] = needs;
    if (!needs && !superneurons()) continue;  // backward never comes here
    for (const LayerParameter& parameter : current.parameters) ++parameters_[parameter.id.index()].expected;
  }
}

bool StepAssembler::needs_gradient(Value value) const { return superneurons() || needs_[value.layer.index()]; }

Step build_step(NetworkPtr network, const StepOptions& options) {
  return StepAssembler(std::move(network), options).finish();
}

}  // namespace tide
