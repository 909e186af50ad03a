// One training step (or forward-only pass) of a network as tasks over tensors: plain data
// that says exactly what each task reads, writes, accumulates and may overwrite. Planners,
// checker, simulator and executor all work on this and on nothing else.
//
// A tensor is a logical value: it is made once per step (accumulations count as one
// making, in a fixed order) and never changes afterwards. A storage is the bytes it lives
// in. Where a value replaces another in the same bytes (updated weights, in-place results)
// there are two tensors and one storage; accounting is per storage, correctness per tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/id.h"
#include "base/lane.h"
#include "base/memory_order.h"
#include "base/shape.h"
#include "network/network.h"
#include "network/role.h"

namespace tide {

enum class TensorClass : std::uint8_t {
  input,                // the batch and its labels, filled by the host before the step
  activation,           // outputs of layers
  activation_gradient,  // their gradients
  saved_state,          // what forward keeps for backward besides outputs: statistics, indices
  parameter,
  parameter_gradient,
  optimizer_state,
  running_statistics,
  metric,  // loss and correct count, read by the host after the step
};
inline constexpr int kTensorClasses = static_cast<int>(TensorClass::metric) + 1;
[[nodiscard]] std::string_view class_name(TensorClass tensor_class);

// A part of a tensor, or all of it in another arrangement; reading through it is reading the tensor. A tensor
// may be made in parts, by tasks without replays: the first part by `write`, each further one, side by side with
// it, by `accumulate`, and nothing is added but by `add`. Planners see the tensor and its storage alone.
struct View {
  Shape shape;
  MemoryOrder order;
  Bytes offset;  // from the first byte of the tensor
  // In a bucket (buckets.h): which one; whose gradient or value it is, which lies as the backend likes, in so many
  // bytes, and begins where any storage could; up to there nobody looks at what is behind it.
  std::int32_t bucket = -1;
  ParameterId parameter = {};
  Bytes bytes = {};  // 0: those of the shape
  // The tensor is as many such views side by side as there are ranks, and this is the one of the rank that looks.
  bool own = false;

  friend bool operator==(const View&, const View&) = default;
};

struct Operand {
  Role role = Role::x;
  Access access = Access::read;
  std::int16_t index = 0;  // which input (x, dx) or output (y, dy) of the layer it belongs to
  TensorId tensor;
  ViewId view = {};  // invalid: the whole tensor as it is
};

struct Tensor {
  TensorClass tensor_class = TensorClass::activation;
  DataType type = DataType::f32;
  Role role = Role::y;     // in its first use; with the layer it makes the tensor's name
  MemoryOrder order = {};  // of parameters and what belongs to them, the backend chooses another
  std::int32_t index = 0;  // of several with this role
  StorageId storage;
  LayerId layer;          // that made it (or whose gradient it is)
  ParameterId parameter;  // for parameter, gradient, optimizer state, running statistics
  Shape shape;
};

struct Storage {
  Bytes bytes;
  TensorClass tensor_class = TensorClass::activation;
  // Persistent storages enter and leave a step in the same place: `entry` is the value
  // they hold before it (invalid: undefined), `exit` the value after it.
  bool persistent = false;
  TensorId entry, exit;
};

enum class TaskKind : std::uint8_t {
  forward,
  replay,         // recomputation variant of a forward task: same outputs, no side effects
  backward,       // of a layer without weights, and of batch norm: everything at once
  backward_data,  // of a layer with weights
  backward_weights,
  sum_gradients,  // y = x0 + x1 + ...: gradients of a value with several consumers
  norm,           // sum of squares of all gradients, for clipping
  update,         // of a parameter, or of several small ones
  // Over all ranks, each with a step of its own; they run on the lane `reduce`, in the same order on every rank:
  reduce,   // the sum of a tensor
  scatter,  // the same, of which each rank gets one part
  gather,   // a tensor of which each rank has one part
};
inline constexpr int kTaskKinds = static_cast<int>(TaskKind::gather) + 1;
[[nodiscard]] std::string_view kind_name(TaskKind kind);
// Whether it computes something of its layer; the others only carry it for their name.
[[nodiscard]] constexpr bool is_of_layer(TaskKind kind) { return kind <= TaskKind::backward_weights; }
// Whether all ranks do it together.
[[nodiscard]] constexpr bool is_collective(TaskKind kind) { return kind >= TaskKind::reduce; }
[[nodiscard]] constexpr Lane lane_of(TaskKind kind) { return is_collective(kind) ? Lane::reduce : Lane::compute; }

// Operand `target` (written) may take the storage of operand `source` (read) if the value
// of `source` is not needed afterwards. Positions within the task's operands.
struct InPlacePair {
  std::int16_t source = 0, target = 0;

  friend bool operator==(const InPlacePair&, const InPlacePair&) = default;
};

// One way to run a task. Backends list them, the fastest first; policies choose.
struct Algorithm {
  std::string name;
  Bytes workspace;
};

struct Task {
  TaskKind kind = TaskKind::forward;
  LayerId layer;
  std::int32_t step = 0;  // as the papers count: layers 1..N forward, N+1..2N backward; 0: update, norm
  std::uint32_t first_operand = 0, operand_count = 0;
  std::uint32_t first_in_place = 0, in_place_count = 0;
  std::uint32_t algorithms = 0;   // index into Step::algorithm_sets
  std::int64_t first_sample = 0;  // of the batch, where tasks work on a part of it
};

enum class Rules : std::uint8_t { minimal, superneurons };
inline constexpr std::size_t kRules = static_cast<std::size_t>(Rules::superneurons) + 1;
[[nodiscard]] std::string_view rules_name(Rules rules);

enum class OptimizerKind : std::uint8_t { sgd, momentum, nesterov, adam, adamw };
inline constexpr std::size_t kOptimizerKinds = static_cast<std::size_t>(OptimizerKind::adamw) + 1;
[[nodiscard]] std::string_view optimizer_name(OptimizerKind kind);

// What a kernel of an update task needs to know; learning rate and step count change from
// step to step and come with StepState instead.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::momentum;
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  double clip_norm = 0;  // 0: no clipping
};

// A training step whose batch is cut into sub-batches is made of rounds, which add up the gradients of the
// parameters, and of one update. Gradients persist from part to part.
enum class Part : std::uint8_t {
  whole,        // not cut
  first_round,  // forward and backward of the first sub-batch: gradients are written
  later_round,  // of another one: gradients are added to
  update,       // norm and updates
};
inline constexpr int kParts = static_cast<int>(Part::update) + 1;
[[nodiscard]] std::string_view part_name(Part part);

// Of a batch: libraries count samples in 32 bits.
inline constexpr std::int64_t kMostSamples = INT32_MAX;

// What each of several ranks keeps only a part of, beside gradients that are summed (shards.cpp).
enum class Shard : std::uint8_t {
  none,
  optimizer,   // the optimizer's state
  parameters,  // that and the parameters
};
inline constexpr std::size_t kShards = static_cast<std::size_t>(Shard::parameters) + 1;
[[nodiscard]] std::string_view shard_name(Shard shard);
// Throws an Error that lists them where it is none of them.
[[nodiscard]] Shard shard_from_name(std::string_view name);

// Of several ranks that train together, each with a step over samples of its own.
struct RankOptions {
  std::int64_t count = 1;
  Bytes bucket = Bytes(25 << 20);  // gradients are summed over the ranks in pieces of about so many bytes
  // Parameters are updated behind the backward pass, so that it need not wait for any sum; otherwise one bucket behind,
  // which keeps fewer gradients.
  bool late_updates = true;
  // Above 0: the samples of all ranks are so many equal parts, each of which goes through the step by itself. Batch
  // norm has the statistics of all of them, and sums over samples follow one binary tree over the parts, whatever the
  // ranks.
  std::int64_t parts = 0;
  Shard shard = Shard::none;
  // Smaller parameters are whole on each rank whatever is sharded: they are little, and layers that have no others can
  // be run again at any time.
  Bytes least_to_shard = Bytes(64 << 10);

  friend bool operator==(const RankOptions&, const RankOptions&) = default;
};

struct StepOptions {
  std::int64_t batch = 1;  // samples of this step: in a round, those of the sub-batch
  Rules rules = Rules::minimal;
  bool training = true;  // false: forward only, with running statistics and no dropout
  OptimizerOptions optimizer = {};
  bool fuse = false;                     // see fuse.h; minimal rules only
  Bytes fuse_limit = {};                 // for the tensors of one fused addition; 0: none
  DataType activations = DataType::f32;  // storage of layer outputs and their gradients; or bf16
  Part part = Part::whole;
  // Above 0: tasks work on this many samples at a time, and batch norm still has the statistics of all of them
  // (see passes.cpp). Whole steps only; nothing is fused then.
  std::int64_t sub_batch = 0;
  RankOptions ranks = {};
  // Forward only: what the network answers is persistent, so that the host can read it behind the step (results.cpp).
  bool keep_results = false;
};

struct Step {
  NetworkPtr network;  // null in a plan just loaded from a file
  StepOptions options;
  std::string model;
  std::vector<std::string> layer_names;  // of the network the step was made from (forks included)
  std::vector<LayerKind> layer_kinds;
  std::vector<Tensor> tensors;
  std::vector<Storage> storages;
  std::vector<Operand> operands;
  std::vector<InPlacePair> in_place;
  std::vector<View> views;
  // The tasks in execution order, then the replay variants of the forward tasks.
  std::vector<Task> tasks;
  std::uint32_t ordered_tasks = 0;                     // how many of `tasks` are not replays
  std::vector<TaskId> replay_of;                       // by task: its replay variant, invalid if it has none
  std::vector<std::vector<Algorithm>> algorithm_sets;  // set 0: {"default", no workspace}
  std::int32_t layer_steps = 0;                        // N: tasks of layer k have step k or 2N+1-k
  std::string backend;                                 // name and version of what annotated the step
  std::vector<TensorId> results;                       // that are kept, in the order of their layers

  [[nodiscard]] const Task& task(TaskId id) const { return tasks[id.index()]; }
  [[nodiscard]] const Tensor& tensor(TensorId id) const { return tensors[id.index()]; }
  [[nodiscard]] const Storage& storage(StorageId id) const { return storages[id.index()]; }
  [[nodiscard]] const View& view(ViewId id) const { return views[id.index()]; }
  // An operand as its task sees it: through its view, where it has one.
  [[nodiscard]] const Shape& shape_of(const Operand& operand) const {
    return operand.view.valid() ? view(operand.view).shape : tensor(operand.tensor).shape;
  }
  [[nodiscard]] const MemoryOrder& order_of(const Operand& operand) const {
    return operand.view.valid() ? view(operand.view).order : tensor(operand.tensor).order;
  }
  [[nodiscard]] Bytes offset_of(const Operand& operand) const {
    return operand.view.valid() ? view(operand.view).offset : Bytes();
  }
  [[nodiscard]] std::span<const Operand> operands_of(const Task& task) const {
    return {operands.data() + task.first_operand, task.operand_count};
  }
  [[nodiscard]] std::span<const Operand> operands_of(TaskId id) const { return operands_of(tasks[id.index()]); }
  [[nodiscard]] std::span<const InPlacePair> in_place_of(const Task& task) const {
    return {in_place.data() + task.first_in_place, task.in_place_count};
  }
  [[nodiscard]] const std::vector<Algorithm>& algorithms_of(TaskId id) const {
    return algorithm_sets[tasks[id.index()].algorithms];
  }
  [[nodiscard]] LayerKind layer_kind(const Task& task) const { return layer_kinds[task.layer.index()]; }
};

using StepPtr = std::shared_ptr<const Step>;

// Over which a batch norm has its statistics: those of the step, or of all ranks.
[[nodiscard]] inline std::int64_t normalized_samples(const StepOptions& options) {
  return options.ranks.parts > 0 ? options.batch * options.ranks.count : options.batch;
}

// How many samples a task works on.
[[nodiscard]] inline std::int64_t samples_of(const Step& step, const Task& task) {
  const std::int64_t left = step.options.batch - task.first_sample, most = step.options.sub_batch;
  return most > 0 && most < left ? most : left;
}

// The bytes that a task sees of an operand: its storage's, or those of its view.
[[nodiscard]] inline Bytes bytes_of(const Step& step, const Operand& operand) {
  const Tensor& tensor = step.tensor(operand.tensor);
  if (!operand.view.valid()) return step.storage(tensor.storage).bytes;
  const View& view = step.view(operand.view);
  return view.bytes.is_zero() ? bytes_of(view.shape, tensor.type) : view.bytes;
}
// Whether it is less than its tensor.
[[nodiscard]] inline bool is_part(const Step& step, const Operand& operand) {
  return operand.view.valid() && step.shape_of(operand).elements() != step.tensor(operand.tensor).shape.elements();
}
// Whether the task adds to what is there; a further part of a tensor is written.
[[nodiscard]] inline bool adds(const Step& step, const Operand& operand) {
  return operand.access == Access::add || (operand.access == Access::accumulate && !is_part(step, operand));
}

// "conv3 backward-data"
[[nodiscard]] std::string task_name(const Step& step, TaskId id);
// "conv3.y", "conv3.d_weight"
[[nodiscard]] std::string tensor_name(const Step& step, TensorId id);
// True for the tensors that the papers count: layer outputs and their gradients.
[[nodiscard]] bool is_data(TensorClass tensor_class);

}  // namespace tide
