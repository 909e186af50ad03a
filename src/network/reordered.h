// Values between a network's order and that of somebody else's file.
#pragma once

#include <span>
#include <vector>

#include "network/network.h"
#include "network/weight_name.h"

namespace tide {

// The array's values in the order of the parameter, and back. REQUIRES: as many values as the weight's extents have.
[[nodiscard]] std::vector<float> to_parameter_order(const WeightName& weight, std::span<const float> array);
[[nodiscard]] std::vector<float> to_array_order(const WeightName& weight, std::span<const float> parameter);
[[nodiscard]] std::vector<double> to_parameter_order(const WeightName& weight, std::span<const double> array);
[[nodiscard]] std::vector<double> to_array_order(const WeightName& weight, std::span<const double> parameter);

// The extents that other frameworks give a parameter: of one number for each channel one, of a matrix two.
[[nodiscard]] std::vector<std::int64_t> array_extents(const Network& network, const Parameter& parameter);

}  // namespace tide
