// How networks are trained where nobody says how: rates at which the optimizer goes down and not away.
#pragma once

#include <cstdint>

#include "network/network.h"
#include "step/step.h"

namespace tide {

// `batch` is the global one. What counts is whether the network's values are normalized on their way: without that
// its gradients grow with its depth.
[[nodiscard]] double usual_learning_rate(const Network& network, const OptimizerOptions& optimizer, std::int64_t batch);

}  // namespace tide
