// Starting values of parameters: a function of seed, parameter index and element alone.
#pragma once

#include <vector>

#include "network/network.h"

namespace tide {

// In logical order. Weights are normal with variance 2 / fan-in (He), scales 1, running
// variances 1, everything else 0.
[[nodiscard]] std::vector<float> initial_values(const Network& network, ParameterId parameter, std::uint64_t seed);

}  // namespace tide
