#include "network/kinds/weighted.h"

namespace tide {

KindDescription describe_weighted() {
  KindDescription kind;
  kind.forward.operands = {reads(Role::x), reads(Role::weight), reads(Role::bias), writes(Role::y)};
  kind.backward_data.operands = {reads(Role::weight), reads(Role::dy), writes(Role::dx)};
  kind.backward_weights.operands = {reads(Role::x), reads(Role::dy), adds_to(Role::d_weight), adds_to(Role::d_bias)};
  kind.checkpoint = true;
  kind.dear = true;
  return kind;
}

std::vector<NewParameter> weight_and_bias(const Shape& weight, std::int64_t channels, bool bias, std::int64_t fan_in) {
  std::vector<NewParameter> made{{ParameterRole::weight, weight, fan_in}};
  if (bias) made.push_back({ParameterRole::bias, per_channel(channels), fan_in});
  return made;
}

}  // namespace tide
