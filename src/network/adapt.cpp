#include "network/adapt.h"

#include <cmath>

#include "base/error.h"

namespace tide {
namespace {

void freeze(Network& network, const std::vector<std::string>& beginnings) {
  for (const std::string& beginning : beginnings) {
    bool matched = false;
    for (Layer& layer : network.layers) {
      if (!layer.name.starts_with(beginning)) continue;
      matched = true;
      layer.frozen = true;
    }
    if (!matched) throw Error("--freeze '{}' matches no layer of {}; see tide summary", beginning, network.name);
  }
  for (Parameter& parameter : network.parameters) parameter.frozen = true;
  for (const Layer& layer : network.layers)
    if (!layer.frozen)
      for (const LayerParameter& used : layer.parameters) network.parameters[used.id.index()].frozen = false;
}

void set_rates(Network& network, const std::vector<AdaptOptions::Rate>& rates) {
  std::vector<bool> matched(rates.size(), false);
  for (const Layer& layer : network.layers) {
    const AdaptOptions::Rate* longest = nullptr;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (!layer.name.starts_with(rates[i].layers)) continue;
      matched[i] = true;
      if (longest == nullptr || rates[i].layers.size() > longest->layers.size()) longest = &rates[i];
    }
    if (longest == nullptr) continue;
    for (const LayerParameter& used : layer.parameters) network.parameters[used.id.index()].rate = longest->factor;
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (!(std::isfinite(rates[i].factor) && rates[i].factor >= 0))
      throw Error("--rate {}={}: the factor must be a number that is not below 0", rates[i].layers, rates[i].factor);
    if (!matched[i]) throw Error("--rate '{}' matches no layer of {}; see tide summary", rates[i].layers, network.name);
  }
}

void set_losses(Network& network, const AdaptOptions& adapted) {
  for (Layer& layer : network.layers) {
    if (layer.kind != LayerKind::softmax_cross_entropy) continue;
    SoftmaxOptions options = layer.as<SoftmaxOptions>();
    if (adapted.label_smoothing > 0) options.label_smoothing = adapted.label_smoothing;
    if (adapted.soft_labels) options.soft = true;
    if (adapted.gaps_in_labels) options.counted = true;
    layer.options = options;
  }
}

}  // namespace

NetworkPtr adapt(const NetworkPtr& network, const AdaptOptions& options) {
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw Error("--label-smoothing {} is not in [0, 1)", options.label_smoothing);
  auto adapted = std::make_shared<Network>(*network);
  if (!options.freeze.empty()) freeze(*adapted, options.freeze);
  set_rates(*adapted, options.rates);
  if (options.decay_weights_only)
    for (Parameter& parameter : adapted->parameters)
      if (parameter.role != ParameterRole::weight) parameter.decay = 0;
  set_losses(*adapted, options);
  return adapted;
}

}  // namespace tide
