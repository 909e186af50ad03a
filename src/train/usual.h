// How networks are trained where nobody says how: rates at which the optimizer goes down and not away.
#pragma once

#include <cstdint>

#include "network/network.h"
#include "step/step.h"

namespace tide {

struct UsualTraining {
  double learning_rate = 0;
  std::int64_t warmup_steps = 0;
};

// `batch` is the global one. What counts is whether the network's values are normalized on their way: without that
// its gradients grow with its depth.
[[nodiscard]] UsualTraining usual_training(const Network& network, const OptimizerOptions& optimizer,
                                           std::int64_t batch);

}  // namespace tide
