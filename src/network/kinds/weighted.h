// What convolutions and fully connected layers have in common.
#pragma once

#include "network/kind.h"

namespace tide {

// Their tasks: y = weight * x + bias, and backward in two.
[[nodiscard]] KindDescription describe_weighted();
// The weight, and a bias per output channel where there is one.
[[nodiscard]] std::vector<NewParameter> weight_and_bias(const Shape& weight, std::int64_t channels, bool bias,
                                                        std::int64_t fan_in);

}  // namespace tide
