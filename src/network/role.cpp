#include "network/role.h"

#include <array>

namespace tide {

std::string_view role_name(Role role) {
  constexpr std::array<std::string_view, kRoles> kNames{"x",
                                                        "y",
                                                        "dy",
                                                        "dx",
                                                        "weight",
                                                        "bias",
                                                        "d_weight",
                                                        "d_bias",
                                                        "mean",
                                                        "inverse_deviation",
                                                        "running_mean",
                                                        "running_variance",
                                                        "indices",
                                                        "labels",
                                                        "metric",
                                                        "first_moment",
                                                        "second_moment",
                                                        "gradient",
                                                        "norm",
                                                        "moments"};
  static_assert(!kNames.back().empty());
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view access_name(Access access) {
  constexpr std::array<std::string_view, kAccesses> kNames{"read", "write", "accumulate", "add"};
  return kNames[static_cast<std::size_t>(access)];
}

std::string_view parameter_role_name(ParameterRole role) {
  constexpr std::array<std::string_view, kParameterRoles> kNames{"weight", "bias",         "scale",
                                                                 "shift",  "running_mean", "running_variance"};
  static_assert(!kNames.back().empty());
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view pytorch_suffix(ParameterRole role) {
  switch (role) {
    case ParameterRole::weight:
    case ParameterRole::scale: return "weight";
    case ParameterRole::bias:
    case ParameterRole::shift: return "bias";
    case ParameterRole::running_mean: return "running_mean";
    case ParameterRole::running_variance: break;
  }
  return "running_var";
}

Role operand_role(ParameterRole role) {
  switch (role) {
    case ParameterRole::weight:
    case ParameterRole::scale: return Role::weight;
    case ParameterRole::bias:
    case ParameterRole::shift: return Role::bias;
    case ParameterRole::running_mean: return Role::running_mean;
    case ParameterRole::running_variance: return Role::running_variance;
  }
  return Role::weight;
}

Role gradient_role(ParameterRole role) { return operand_role(role) == Role::weight ? Role::d_weight : Role::d_bias; }

}  // namespace tide
