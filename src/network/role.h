// What a tensor is to the task that uses it, and what the task does with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tide {

// Kernels find their operands by role; where a task has several of one role (add, concat,
// split), they stand in input or output order.
enum class Role : std::uint8_t {
  x,
  y,
  dy,
  dx,
  weight,
  bias,  // of a normalization: scale, shift
  d_weight,
  d_bias,  // their gradients
  mean,
  inverse_deviation,  // saved by a normalization: of the batch, or of each sample's groups
  running_mean,
  running_variance,  // read as they were, written as they will be
  indices,           // of max pool: position within the window, u8
  labels,
  metric,  // metric: f32 {sum of losses, correct count}
  first_moment,
  second_moment,  // optimizer state
  gradient,       // update and norm: the parameter's gradient
  norm,           // of all gradients, for clipping: f32 {sum of squares}
  moments,        // of batch norm over parts of a batch: of each, two numbers for each channel
};
inline constexpr std::size_t kRoles = static_cast<std::size_t>(Role::moments) + 1;
[[nodiscard]] std::string_view role_name(Role role);

enum class Access : std::uint8_t {
  read,
  write,       // the whole tensor is made; what was there before does not matter
  accumulate,  // added to what earlier tasks of this step wrote
  add,         // the same, in a part of the tensor: what accumulates a part writes a further one
};
inline constexpr std::size_t kAccesses = static_cast<std::size_t>(Access::add) + 1;
[[nodiscard]] std::string_view access_name(Access access);

// What a layer uses a parameter as. Statistics are kept, not trained.
enum class ParameterRole : std::uint8_t { weight, bias, scale, shift, running_mean, running_variance };
inline constexpr int kParameterRoles = static_cast<int>(ParameterRole::running_variance) + 1;
[[nodiscard]] std::string_view parameter_role_name(ParameterRole role);
// What PyTorch calls it: weight, bias, running_mean or running_var.
[[nodiscard]] std::string_view pytorch_suffix(ParameterRole role);
[[nodiscard]] constexpr bool is_statistic(ParameterRole role) {
  return role == ParameterRole::running_mean || role == ParameterRole::running_variance;
}
// As which operand its tasks take it, and its gradient. REQUIRES for the latter: no statistic.
[[nodiscard]] Role operand_role(ParameterRole role);
[[nodiscard]] Role gradient_role(ParameterRole role);

}  // namespace tide
