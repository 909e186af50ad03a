// The step under construction: tables, and the bookkeeping that forward.cpp and
// backward.cpp share. What the tasks of a layer look like is in the description of its kind
// (network/kind.h). Internal to step/.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>

#include "network/kind.h"
#include "step/build.h"

namespace tide {

struct NewOperand {
  Role role;
  TensorId tensor;
  Access access = Access::read;
  std::int16_t index = 0;
  ViewId view = {};
};

// What a layer has saved.
struct SavedTensor {
  Role role;
  TensorId tensor;
};

// The samples that tasks work on together: all of the batch, or one of the sub-batches it is cut into.
struct Chunk {
  std::int64_t first_sample = 0, samples = 0;
  std::vector<TensorId> values;                 // by flat value
  std::vector<TensorId> gradients;              // by flat value: the sum so far
  std::vector<TensorId> second_gradients;       // by flat value: to be added to that by sums_gradients()
  std::vector<std::vector<SavedTensor>> saved;  // by layer
  TensorId labels;
};

class StepAssembler {
 public:
  StepAssembler(NetworkPtr network, const StepOptions& options);
  [[nodiscard]] Step finish() &&;

 private:
  // A gradient of one chunk.
  struct Leaf {
    TensorId tensor;
    std::int32_t arrived = 0;
  };
  // Of a batch norm, of this rank's chunks.
  struct Moments {
    TensorId own;
    std::size_t begun_by = 0;  // as Bucket's
  };
  // A value's gradient so far, and what is known about it.
  struct ParameterState {
    TensorId value;          // before the update
    bool in_bucket = false;  // the value, which `view` shows
    TensorId first_moment, second_moment;
    TensorId gradient;  // invalid until its first contribution, unless it persists
    ViewId view;        // in its bucket, where there are several ranks
    std::size_t bucket = 0;
    std::vector<Leaf> leaves;                              // by chunk, where gradients are made part by part
    std::map<std::pair<int, std::size_t>, TensorId> tree;  // by level and number of the parent: a node that waits
    bool written = false;                                  // whether something is in it to add to
    std::int32_t expected = 0, arrived = 0;                // layers that use it in backward: all, and through so far
    LayerId layer;                                         // the first that uses it, for names
  };

  // Gradients that are summed over the ranks together.
  struct Bucket {
    std::vector<ParameterId> parameters;
    std::size_t missing = 0;   // parameters whose gradients are not complete
    TensorId tensor;           // with the gradients of this rank, later with those of all
    std::size_t begun_by = 0;  // task that writes its first part, from 1; 0: none yet
    Bytes bytes;               // of all of it
    // Where its state is divided over the ranks (shards.cpp): this rank's shares, and all parameters in the pass at
    // work.
    bool sharded = false, read_in_pass = false;
    TensorId values;
    TensorId value_share, gradient_share, first_moment, second_moment;
  };

  // Tables (assembler.cpp).
  StorageId new_storage(Bytes bytes, TensorClass tensor_class);
  TensorId new_tensor(TensorClass tensor_class, const Shape& shape, LayerId layer, Role role, std::int32_t index = 0,
                      StorageId storage = {}, std::optional<DataType> type = {});
  TensorId new_persistent(ParameterId parameter, TensorClass tensor_class, LayerId layer, Role role);
  // The value that follows `old` in its storage.
  TensorId successor(TensorId old);
  void new_task(TaskKind kind, LayerId layer, std::int32_t step, const std::vector<NewOperand>& operands);
  // Allows (or, where the storages are one already, declares) an in-place result on the newest task.
  void allow_in_place(Role source, Role target);
  // Declares the results of the newest task that share an operand's storage already.
  void declare_in_place();
  // In results.cpp: what losses, or the last layers of a network without one, answer outlasts the step.
  void keep_results();
  void make_persistent_tensors();
  void make_chunks();
  void make_persistent_gradients();
  void find_gradient_needs();

  // passes.cpp
  void run_whole(const std::vector<LayerId>& order);
  void run_exact(const std::vector<LayerId>& order);
  void find_levels(const std::vector<LayerId>& order);
  void forward_statistics(LayerId layer);
  void forward_normalize(LayerId layer);
  void backward_sums(LayerId layer);
  void backward_spread(LayerId layer);
  [[nodiscard]] bool is_exact() const { return step_.options.sub_batch > 0; }
  [[nodiscard]] bool is_last_chunk() const { return chunk_ == &chunks_.back(); }

  // operands.cpp
  [[nodiscard]] bool applies(When when, LayerId layer) const;
  // The operands that rows of a table stand for; what is written is made.
  [[nodiscard]] std::vector<NewOperand> operands_for(LayerId layer, const std::vector<OperandRow>& rows);
  void add_read(LayerId layer, Role role, std::vector<NewOperand>& operands) const;
  void add_written(LayerId layer, const OperandRow& row, std::vector<NewOperand>& operands);
  void add_input_gradients(LayerId layer, const OperandRow& row, std::vector<NewOperand>& operands);
  void add_metric(LayerId layer, std::vector<NewOperand>& operands);
  [[nodiscard]] TensorId saved(LayerId layer, Role role) const;
  TensorId save(LayerId layer, Role role);
  [[nodiscard]] TensorId running(LayerId layer, Role role) const;

  // forward.cpp
  void forward(LayerId layer);
  void forward_input(LayerId layer);
  void make_outputs(LayerId layer);
  void make_replays();
  // backward.cpp
  void backward(LayerId layer);
  void backward_split(LayerId layer, std::vector<NewOperand>& gradients);
  // Makes the task if it has something to write, and adds the gradients of inputs that it makes.
  void backward_task(TaskKind kind, LayerId layer, const TaskTable& table, std::vector<NewOperand>& gradients);
  // batch_norm.cpp
  [[nodiscard]] bool is_fused(LayerId layer) const;
  void backward_fused(LayerId layer);
  // Whether the layer that makes a value sums two gradients of it by itself.
  [[nodiscard]] bool sums_gradients(Value value) const;
  // Adds to the gradient of a value: takes `gradient` as it is, or sums.
  void contribute(Value value, TensorId gradient, LayerId from);
  // What a task makes of a parameter's gradient.
  NewOperand parameter_gradient(ParameterId parameter, Role role, LayerId layer);
  void arrive(ParameterId parameter);
  // reductions.cpp: several ranks
  [[nodiscard]] bool is_shared() const { return step_.options.ranks.count > 1 && step_.options.training; }
  // parts.cpp: parts of the global batch
  [[nodiscard]] bool in_parts() const { return step_.options.ranks.parts > 0; }
  [[nodiscard]] std::size_t chunk_index() const { return static_cast<std::size_t>(chunk_ - chunks_.data()); }
  NewOperand leaf_gradient(ParameterId parameter, Role role, LayerId id);
  NewOperand whole_gradient(ParameterId parameter, Role role, LayerId id);
  void arrive_at_leaf(ParameterId parameter);
  void add_to_tree(ParameterId parameter, int level, std::size_t index, TensorId tensor);
  TensorId new_moments(LayerId id, std::int64_t parts);
  NewOperand moments_row(LayerId id, Role role, std::int64_t first, std::int64_t count);
  TensorId gather_moments(LayerId id);
  void part_statistics(LayerId id);
  void finish_statistics(LayerId id);
  void part_sums(LayerId id);
  void finish_sums(LayerId id, bool spreads);

  void make_buckets();
  void make_bucket_tensor(Bucket& bucket);
  [[nodiscard]] std::int32_t number_of(const Bucket& bucket) const {
    return static_cast<std::int32_t>(&bucket - buckets_.data());
  }
  NewOperand bucket_part(ParameterId parameter, Role role);
  void complete(ParameterId parameter);
  void reduce(Bucket& bucket);
  void update_reduced(std::size_t buckets, TensorId norm);  // the first so many
  // shards.cpp: state that is divided over the ranks
  [[nodiscard]] bool shards() const {
    return step_.options.ranks.shard != Shard::none && step_.options.ranks.count > 1;
  }
  [[nodiscard]] bool gathers_parameters() const { return shards() && step_.options.ranks.shard == Shard::parameters; }
  TensorId new_share(const Bucket& bucket, TensorClass tensor_class, Role role);
  TensorId new_values(const Bucket& bucket);
  void make_sharded_state(Bucket& bucket);
  // Before the tasks of a layer in a pass: the parameters that they read are there.
  void fetch_parameters(LayerId layer);
  void fetch_bucket(std::size_t bucket);
  void begin_pass(bool forward);
  [[nodiscard]] bool reads_parameters(LayerId layer) const;
  void scatter(Bucket& bucket);
  void update_share(Bucket& bucket, TensorId norm);
  void gather_updated();
  TensorId sum_over_ranks(TensorId norm);
  // updates.cpp
  void update(ParameterId parameter, TensorId norm);
  void update_together(TensorId norm);  // those that wait
  void new_update(std::span<const ParameterId> parameters, TensorId norm);
  TensorId clipping_norm();
  void update_all();  // behind the backward pass, clipped where the options say so

  [[nodiscard]] bool superneurons() const { return step_.options.rules == Rules::superneurons; }
  [[nodiscard]] const Layer& layer(LayerId id) const { return network_->layer(id); }
  [[nodiscard]] const KindDescription& kind_of(LayerId id) const { return description_of(layer(id).kind); }
  [[nodiscard]] bool mixes_samples(LayerId id) const { return kind_of(id).over_batch && !keeps_statistics(layer(id)); }
  [[nodiscard]] Shape batch_shape(Value value) const { return network_->shape(value).with_batch(chunk_->samples); }
  [[nodiscard]] std::size_t flat(Value value) const {
    return first_value_[value.layer.index()] + static_cast<std::size_t>(value.output);
  }
  [[nodiscard]] TensorId value_tensor(Value value) const { return chunk_->values[flat(value)]; }
  [[nodiscard]] TensorId output_tensor(LayerId id, std::int32_t output = 0) const { return value_tensor({id, output}); }
  [[nodiscard]] StorageId storage_of(TensorId id) const { return step_.tensors[id.index()].storage; }
  // Whether backward makes a gradient for this value.
  [[nodiscard]] bool needs_gradient(Value value) const;
  // The value of a parameter as an operand.
  [[nodiscard]] NewOperand parameter_value(ParameterId id, Role role) const {
    const ParameterState& state = parameters_[id.index()];
    return {role, state.value, Access::read, 0, state.in_bucket ? state.view : ViewId()};
  }
  [[nodiscard]] NewOperand parameter_value(LayerId id, ParameterRole role) const {
    return parameter_value(layer(id).parameter(role), operand_role(role));
  }
  [[nodiscard]] bool trains(const Layer& l) const { return !l.parameters.empty() && !l.frozen; }
  [[nodiscard]] std::int32_t backward_step(LayerId id) const { return 2 * step_.layer_steps + 1 - number_[id.index()]; }

  NetworkPtr network_;
  Step step_;
  std::vector<std::size_t> first_value_;  // by layer: its first value in the flat tables
  std::size_t value_count_ = 0;
  std::vector<Chunk> chunks_;
  Chunk* chunk_ = nullptr;            // at work
  std::vector<ParameterId> small_;    // parameters that wait to be updated together
  std::vector<std::int32_t> number_;  // by layer: its forward step
  std::vector<bool> needs_;           // by layer: something at or before it is trained
  std::vector<ParameterState> parameters_;
  std::vector<Bucket> buckets_;
  std::size_t reduced_ = 0, updated_ = 0;             // buckets
  bool forward_ = true;                               // the pass at work
  std::vector<TensorId> metrics_;                     // by layer, and by chunk in parts
  std::vector<std::vector<SavedTensor>> statistics_;  // by layer: as they are before the step
  // Exact batch norm: by layer, how many batch norms are on the longest way to it, and the sums of backward.
  std::vector<std::int32_t> level_;
  std::vector<TensorId> scale_sums_, shift_sums_;
  std::vector<Moments> moments_;  // by layer, of the pass at work
};

}  // namespace tide
