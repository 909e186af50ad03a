#include "network/kind.h"

#include <algorithm>
#include <array>

namespace tide {
namespace {

constexpr std::array<std::string_view, kLayerKinds> kNames = {
#define TIDE_NAME(kind) #kind,
    TIDE_LAYER_KINDS(TIDE_NAME)
#undef TIDE_NAME
};

}  // namespace

std::string_view kind_name(LayerKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<LayerKind> kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<LayerKind>(i);
  return std::nullopt;
}

const KindDescription& description_of(LayerKind kind) {
  static const std::array<KindDescription, kLayerKinds> all{
#define TIDE_DESCRIPTION(kind) describe_##kind(),
      TIDE_LAYER_KINDS(TIDE_DESCRIPTION)
#undef TIDE_DESCRIPTION
  };
  return all[static_cast<std::size_t>(kind)];
}

std::vector<LayerKind> kinds_with(bool KindDescription::*trait) {
  std::vector<LayerKind> kinds;
  for (int k = 0; k < kLayerKinds; ++k)
    if (description_of(static_cast<LayerKind>(k)).*trait) kinds.push_back(static_cast<LayerKind>(k));
  return kinds;
}

bool mixes_samples(const std::vector<LayerKind>& kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [](LayerKind kind) { return description_of(kind).over_batch; });
}

bool keeps_statistics(const Layer& layer) {
  const auto* const norm = std::get_if<BatchNormOptions>(&layer.options);
  return norm != nullptr && norm->frozen_statistics;
}

std::vector<LossLabels> loss_labels(const Network& network) {
  std::vector<LossLabels> all;
  for (const Layer& layer : network.layers)
    if (is_loss(layer)) all.push_back(description_of(layer.kind).loss(layer));
  return all;
}

bool has_answers(const Network& network) {
  const std::vector<LossLabels> losses = loss_labels(network);
  return std::any_of(losses.begin(), losses.end(), [](const LossLabels& loss) { return loss.answers > 0; });
}

bool equal_options(const LayerOptions& a, const LayerOptions& b) {
  return a.index() == b.index() && std::visit(
                                       [&](const auto& options) {
                                         using Options = std::remove_cvref_t<decltype(options)>;
                                         return equal_fields(options, std::get<Options>(b));
                                       },
                                       a);
}

std::int64_t* random_stream(LayerOptions& options) {
  if (auto* const dropout = std::get_if<DropoutOptions>(&options)) return &dropout->stream;
  if (auto* const path = std::get_if<DropPathOptions>(&options)) return &path->stream;
  return nullptr;
}

const std::int64_t* random_stream(const LayerOptions& options) {
  return random_stream(const_cast<LayerOptions&>(options));
}

std::vector<Shape> same_shape(const Layer& /*layer*/, const std::vector<Shape>& inputs) { return {inputs[0]}; }

Shape per_channel(std::int64_t channels) { return {channels}; }

}  // namespace tide
