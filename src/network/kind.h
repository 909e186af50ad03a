// Everything that the pipeline asks about a kind of layer, as data. One file per kind or family in
// kinds/ fills it in; builder, network files, step, cost model, policies and tests follow it.
#pragma once

#include <optional>
#include <vector>

#include "network/network.h"
#include "network/role.h"

namespace tide {

// In which steps an operand is there.
enum class When : std::uint8_t {
  always,
  training,
  for_backward,       // training under `minimal`, where the output's gradient is wanted
  minimal,            // rules
  superneurons,       // rules: reads that kernels ignore, but that the paper counts
  slope_of_input,     // backward of functions whose slope is one of their input,
  slope_of_result,    // or of their result (KindDescription::slope)
  moving_statistics,  // training, where running statistics are not frozen
};

// What the slope of an element-wise function is made from.
enum class Slope : std::uint8_t { constant, of_input, of_result };

// What a loss takes of a sample's labels.
struct LossLabels {
  std::int64_t offset = 0, count = 0;
  bool floats = false;  // targets in the 32 bits of a label each
  // The count's last one is no label: a factor that is the same for all samples of a batch, and that makes the mean
  // over all labels one over those that count. The host fills it in.
  bool counted = false;
  std::int64_t classes = 0;  // of which a label names one; 0: labels are numbers
  double weight = 1;
  // Of a sample: what the loss is a mean over, and the answers that can be right.
  std::int64_t terms = 1, answers = 0;
};

// One row of a task's operands. A role stands for all that the layer has of it: x and dx for its
// inputs (dx: those whose gradient is wanted), y and dy for its outputs, weight and bias for the
// parameters that are there, d_weight and d_bias for the ones that are trained.
struct OperandRow {
  Role role;
  Access access = Access::read;
  When when = When::always;
  // Rules `superneurons`: the (first) result lies in the storage of the first operand of this role.
  std::optional<Role> takes = {};
};

// Results of role `target` may take the place of operands of role `source`.
struct InPlaceRoles {
  Role source, target;
};

struct TaskTable {
  std::vector<OperandRow> operands = {};  // none: there is no such task
  std::vector<InPlaceRoles> in_place = {};
};

// Whether the output is the tensor of the input, without a task.
enum class Alias : std::uint8_t { never, forward_only, always };

// What forward keeps for backward and replay besides outputs.
struct SavedState {
  Shape shape;
  DataType type = DataType::f32;
};

struct NewParameter {
  ParameterRole role;
  Shape shape;
  std::int64_t fan_in = 1;
};

// What a task with weights multiplies.
enum class Product : std::uint8_t { none, convolution, transposed_convolution, matrix };

// How often a kernel goes over its operands.
enum class Passes : std::uint8_t {
  one,
  two,
  statistics_first,  // once for sums over x (and the gradients), then once more for what is made of them
};

// As SuperNeurons' figures 2 and 8 group layers.
enum class PaperType : std::uint8_t {
  convolution,
  fully_connected,
  pool,
  activation,
  batch_norm,
  lrn,
  dropout,
  softmax,
  other,
};

inline constexpr int kAnyNumber = -1;

struct KindDescription {
  // The network.
  LayerOptions defaults = NoOptions{};  // says which alternative of LayerOptions the kind takes
  int fewest_inputs = 1, most_inputs = 1;
  // Throws an Error that says what does not fit; the caller names the layer.
  std::vector<Shape> (*shapes)(const Layer& layer, const std::vector<Shape>& inputs) = nullptr;
  std::vector<NewParameter> (*parameters)(const Layer& layer, const Shape& input) = nullptr;  // null: none

  // The step. Replays have the operands of forward unless `replay` says otherwise; backward is one
  // task, or one for dx and one for the weights.
  TaskTable forward = {}, backward = {}, backward_data = {}, backward_weights = {};
  std::vector<OperandRow> replay = {};
  bool replays = true;
  SavedState (*saved)(Role role, const Layer& layer, std::int64_t samples) = nullptr;  // of the roles that it saves
  Alias alias = Alias::never;
  std::optional<When> passes_gradient = {};  // where the gradient of every input is dy itself, without a task
  bool numbered = true;                      // as a layer in the papers' count of steps
  bool full_precision = false;               // its output is fp32 in every step
  bool over_batch = false;                   // mixes samples, so that sub-batches need exact batch norm (passes.cpp)
  Slope (*slope)(const Layer& layer) = nullptr;      // of element-wise functions: null where tables say all
  LossLabels (*loss)(const Layer& layer) = nullptr;  // null: it is none

  // The cost model: of tasks without a product, by the largest operand.
  double flops_per_element = 1;
  Product product = Product::none;
  Passes passes = Passes::one;

  // Policies. `checkpoint` and `offload`: SuperNeurons' sets of layers that are kept, and offloaded.
  // `dear`: drop-cheap never runs it again.
  bool checkpoint = false, offload = false, dear = false;
  PaperType paper_type = PaperType::other;
};

[[nodiscard]] const KindDescription& description_of(LayerKind kind);
// All kinds with a trait, such as &KindDescription::checkpoint.
[[nodiscard]] std::vector<LayerKind> kinds_with(bool KindDescription::*trait);
// Whether one of them mixes samples, so that results of sub-batches are not those of the batch.
[[nodiscard]] bool mixes_samples(const std::vector<LayerKind>& kinds);

// Whether it is a batch norm that normalizes with its running statistics in training too.
[[nodiscard]] bool keeps_statistics(const Layer& layer);

[[nodiscard]] inline bool is_loss(const Layer& layer) { return description_of(layer.kind).loss != nullptr; }
// Of the losses, in the network's order.
[[nodiscard]] std::vector<LossLabels> loss_labels(const Network& network);
// Whether what it answers can be right or wrong.
[[nodiscard]] bool has_answers(const Network& network);

// Of every kind, in kinds/.
#define TIDE_DESCRIBE(kind) [[nodiscard]] KindDescription describe_##kind();
TIDE_LAYER_KINDS(TIDE_DESCRIBE)
#undef TIDE_DESCRIBE

// For the functions of a description: an Error without the layer's name, which the caller adds.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw Error(format, std::forward<Args>(args)...);
}

// Of layers whose output is as large as their input.
[[nodiscard]] std::vector<Shape> same_shape(const Layer& layer, const std::vector<Shape>& inputs);
// Of one number per channel.
[[nodiscard]] Shape per_channel(std::int64_t channels);

// Rows of tables.
[[nodiscard]] constexpr OperandRow reads(Role role, When when = When::always) { return {role, Access::read, when, {}}; }
[[nodiscard]] constexpr OperandRow writes(Role role, When when = When::always, std::optional<Role> takes = {}) {
  return {role, Access::write, when, takes};
}
[[nodiscard]] constexpr OperandRow adds_to(Role role) { return {role, Access::accumulate, When::always, {}}; }

}  // namespace tide
