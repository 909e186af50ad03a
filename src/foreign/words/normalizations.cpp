#include <array>

#include "foreign/lowering.h"

namespace tide {
namespace {

Array per_channel_array(const NodeContext& node, std::size_t input, const char* what, std::int64_t channels) {
  Array array = node.array(input, what);
  if (element_count(array.extents) != channels)
    node.refuse("its {} has extents {}; it must be one number for each of {} channels", what,
                fmt::join(array.extents, "x"), channels);
  return array;
}

void lower_batch_norm(const NodeContext& node) {
  const Made x = node.made(0);
  const std::int64_t channels = node.shape(0).channels();
  BatchNormOptions options;
  options.epsilon = node.number("epsilon", 1e-5);
  // There it is the weight of what was before.
  options.momentum = 1 - node.number("momentum", 0.9);
  // 1 - 0.9 as somebody wrote it.
  options.momentum = as_written(static_cast<float>(options.momentum));
  if (node.integer("spatial", 1) != 1)
    node.refuse("it normalizes each position by itself, for which there is no layer");
  if (node.integer("training_mode", 0) == 0) {
    if (node.lowering().trains)
      options.frozen_statistics = true;
    else
      ++node.lowering().evaluating_norms;
  }
  Operation operation;
  operation.kind = LayerKind::batch_norm;
  operation.inputs = {x};
  operation.node = &node.node();
  operation.options = options;
  operation.parameters = {{ParameterRole::scale, per_channel_array(node, 1, "scale", channels)},
                          {ParameterRole::shift, per_channel_array(node, 2, "bias", channels)},
                          {ParameterRole::running_mean, per_channel_array(node, 3, "mean", channels)},
                          {ParameterRole::running_variance, per_channel_array(node, 4, "variance", channels)}};
  node.give(node.operations().add(std::move(operation)));
  const auto problem = std::make_shared<const std::string>(
      fmt::format("{}: its statistics are read, for which there is no layer", describe(node.node())));
  for (std::size_t output = 1; output < node.node().outputs.size(); ++output) node.give(Unknown{problem}, output);
}

void give_group_norm(const NodeContext& node, std::int64_t groups, Array scale, Array shift) {
  Operation operation;
  operation.kind = LayerKind::group_norm;
  operation.inputs = {node.made(0)};
  operation.node = &node.node();
  operation.options = GroupNormOptions{.groups = groups, .epsilon = node.number("epsilon", 1e-5)};
  operation.parameters = {{ParameterRole::scale, std::move(scale)}, {ParameterRole::shift, std::move(shift)}};
  node.give(node.operations().add(std::move(operation)));
}

void lower_instance_norm(const NodeContext& node) {
  const std::int64_t channels = node.shape(0).channels();
  give_group_norm(node, channels, per_channel_array(node, 1, "scale", channels),
                  per_channel_array(node, 2, "bias", channels));
}

// One number for each group, as older operator sets have them, for each of its channels.
Array spread_over_groups(const NodeContext& node, const Array& array, std::int64_t channels, std::int64_t groups) {
  if (!array.name.empty())
    node.refuse(
        "its '{}' has one number for each group; export with operator set 21 or newer, where each channel has one",
        array.name);
  const std::vector<double> values = doubles_of(array);
  std::vector<double> spread;
  for (std::int64_t c = 0; c < channels; ++c)
    spread.push_back(values[static_cast<std::size_t>(c / (channels / groups))]);
  return made_array(std::move(spread), {channels});
}

void lower_group_norm(const NodeContext& node) {
  const std::int64_t channels = node.shape(0).channels(), groups = node.integer("num_groups", 0);
  if (groups < 1 || channels % groups != 0) node.refuse("it has {} groups for {} channels", groups, channels);
  const bool per_group = node.opset() < 21 && groups != channels;
  const auto read = [&](std::size_t input, const char* what) {
    if (!per_group) return per_channel_array(node, input, what, channels);
    return spread_over_groups(node, per_channel_array(node, input, what, groups), channels, groups);
  };
  give_group_norm(node, groups, read(1, "scale"), read(2, "bias"));
}

void lower_lrn(const NodeContext& node) {
  node.give_layer(LayerKind::lrn, LrnOptions{.size = node.integer("size", 0),
                                             .alpha = node.number("alpha", 1e-4),
                                             .beta = node.number("beta", 0.75),
                                             .k = node.number("bias", 1)});
}

void lower_layer_norm(const NodeContext& node) {
  node.refuse("there is no layer that normalizes over the last axes; group_norm over channels is the nearest");
}

constexpr std::array kNormalizationWords{
    Word{"", "BatchNormalization", lower_batch_norm}, Word{"", "InstanceNormalization", lower_instance_norm},
    Word{"", "GroupNormalization", lower_group_norm}, Word{"", "LRN", lower_lrn},
    Word{"", "LayerNormalization", lower_layer_norm},
};

}  // namespace

std::span<const Word> normalization_words() { return kNormalizationWords; }

}  // namespace tide
