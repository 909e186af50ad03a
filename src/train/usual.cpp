#include "train/usual.h"

#include <algorithm>
#include <cmath>

namespace tide {
namespace {

bool is_normalized(const Network& network) {
  return std::any_of(network.layers.begin(), network.layers.end(), [](const Layer& layer) {
    return layer.kind == LayerKind::batch_norm || layer.kind == LayerKind::group_norm;
  });
}

// Layers with weights on the longest way through the network.
std::int64_t depth_of(const Network& network) {
  std::vector<std::int64_t> depths(network.layers.size(), 0);
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const Layer& layer = network.layers[l];
    for (const Value& input : layer.inputs) depths[l] = std::max(depths[l], depths[input.layer.index()]);
    if (!layer.parameters.empty()) ++depths[l];
  }
  return depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
}

}  // namespace

double usual_learning_rate(const Network& network, const OptimizerOptions& optimizer, std::int64_t batch) {
  const auto samples = static_cast<double>(batch);
  const bool normalized = is_normalized(network);
  const bool adaptive = optimizer.kind == OptimizerKind::adam || optimizer.kind == OptimizerKind::adamw;
  const double depth = static_cast<double>(std::max<std::int64_t>(depth_of(network), 1));
  if (adaptive) return (normalized ? 1e-3 : 1e-3 / std::sqrt(depth)) * std::min(1.0, std::sqrt(samples / 32));
  // The rates are for this momentum; a smaller one goes less far with a rate.
  constexpr double kMomentum = 0.9;
  const double momentum = optimizer.kind == OptimizerKind::sgd ? 0 : optimizer.momentum;
  const double farther = std::min(2.0, (1 - momentum) / (1 - kMomentum));
  const double base = normalized ? 0.05 : std::min(0.004, 0.05 / depth);
  return base * farther * std::min(1.0, samples / 32);
}

}  // namespace tide
