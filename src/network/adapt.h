// What a training job says about the layers of a network: which are not trained, or at another rate, and what its
// losses compare with. The network stays what it computes.
#pragma once

#include <string>
#include <vector>

#include "network/network.h"

namespace tide {

struct AdaptOptions {
  std::vector<std::string> freeze = {};  // layers whose names begin so are not trained
  struct Rate {
    std::string layers;  // whose names begin so; of several that fit, the longest counts
    double factor = 1;   // of the learning rate
  };
  std::vector<Rate> rates = {};
  bool decay_weights_only = false;  // biases, and scales and shifts of normalizations, have no weight decay
  double label_smoothing = 0;       // of every softmax_cross_entropy, where it is above 0
  bool soft_labels = false;         // of every softmax_cross_entropy: labels are the probabilities of all classes
  bool gaps_in_labels = false;      // of every softmax_cross_entropy: labels that are no class do not count
};

// Throws an Error where a name fits no layer, quoting it.
[[nodiscard]] NetworkPtr adapt(const NetworkPtr& network, const AdaptOptions& options);

}  // namespace tide
