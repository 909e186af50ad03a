#include "base/names.h"

#include <array>

#include "step/buckets.h"

namespace tide {

std::string_view class_name(TensorClass tensor_class) {
  constexpr std::array<std::string_view, kTensorClasses> kNames{
      "input",           "activation",         "activation_gradient",
      "saved_state",     "parameter",          "parameter_gradient",
      "optimizer_state", "running_statistics", "metric"};
  return kNames[static_cast<std::size_t>(tensor_class)];
}

std::string_view kind_name(TaskKind kind) {
  constexpr std::array<std::string_view, kTaskKinds> kNames{
      "forward", "replay", "backward", "backward-data", "backward-weights", "sum-gradients", "norm",
      "update",  "reduce", "scatter",  "gather"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view optimizer_name(OptimizerKind kind) {
  constexpr std::array<std::string_view, kOptimizerKinds> kNames{"sgd", "momentum", "nesterov", "adam", "adamw"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {
constexpr std::array<std::string_view, kShards> kShardNames{"none", "optimizer", "parameters"};
}  // namespace

std::string_view shard_name(Shard shard) { return kShardNames[static_cast<std::size_t>(shard)]; }
Shard shard_from_name(std::string_view name) { return find_name<Shard>(kShardNames, name, "thing to shard"); }

std::string_view rules_name(Rules rules) { return rules == Rules::minimal ? "minimal" : "superneurons"; }

std::string_view part_name(Part part) {
  constexpr std::array<std::string_view, kParts> kNames{"whole", "first-round", "later-round", "update"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string task_name(const Step& step, TaskId id) {
  const Task& task = step.task(id);
  if (task.kind == TaskKind::norm) return "gradient norm";
  const std::string& layer = step.layer_names[task.layer.index()];
  const TensorId first = step.operands_of(task).front().tensor;
  if (is_collective(task.kind)) return fmt::format("{} {}", tensor_name(step, first), kind_name(task.kind));
  if (task.kind == TaskKind::update) {
    // A layer has several parameters: say which.
    const Operand& gradient = step.operands_of(task).front();
    const Role role = step.tensor(first).role;
    if (is_share(step.tensor(first))) return fmt::format("{} update", tensor_name(step, first));
    if (!gradient.view.valid()) return fmt::format("{} update {}", layer, role_name(role));
    for (const Operand& operand : step.operands_of(task))
      if (operand.role == Role::weight)
        return fmt::format("{} update {}", layer, role_name(step.tensor(operand.tensor).role));
  }
  return fmt::format("{} {}", layer, kind_name(task.kind));
}

std::string tensor_name(const Step& step, TensorId id) {
  const Tensor& tensor = step.tensor(id);
  if (is_bucket(tensor) || is_share(tensor)) {
    const std::string bucket = fmt::format("bucket{}", bucket_of(tensor));
    const bool gradient = tensor.tensor_class == TensorClass::parameter_gradient;
    if (is_bucket(tensor)) return gradient ? bucket : fmt::format("{}.{}", bucket, role_name(tensor.role));
    return fmt::format("{}.{}-share", bucket, role_name(tensor.role));
  }
  const std::string_view layer =
      tensor.layer.valid() ? std::string_view(step.layer_names[tensor.layer.index()]) : "step";
  if (tensor.index == 0) return fmt::format("{}.{}", layer, role_name(tensor.role));
  return fmt::format("{}.{}{}", layer, role_name(tensor.role), tensor.index);
}

bool is_data(TensorClass tensor_class) {
  return tensor_class == TensorClass::activation || tensor_class == TensorClass::activation_gradient;
}

}  // namespace tide
