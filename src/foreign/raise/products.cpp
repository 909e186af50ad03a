// Convolutions, products, pools, means and normalizations.
#include "foreign/raiser.h"

namespace tide {

void Raiser::give_window(ForeignNode& to, const Window& w, bool with_kernel) {
  if (with_kernel) to.attributes["kernel_shape"] = std::vector{w.kernel_height, w.kernel_width};
  to.attributes["strides"] = std::vector{w.stride_height, w.stride_width};
  to.attributes["pads"] = std::vector{w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
  to.attributes["dilations"] = std::vector{w.dilation_height, w.dilation_width};
}

void Raiser::raise_convolution(const Layer& layer, const char* op) {
  const auto& options = layer.as<ConvolutionOptions>();
  Names inputs{as_image(layer), array(layer, ParameterRole::weight)};
  if (options.bias) inputs.push_back(array(layer, ParameterRole::bias));
  ForeignNode& made = node(layer, op, std::move(inputs));
  give_window(made, options.window, true);
  made.attributes["group"] = options.groups;
}

void Raiser::raise_product(const Layer& layer) {
  std::string from = input(layer);
  if (shape(layer).rank() != 2) {
    ForeignNode& flat = node(layer, "Flatten", {from}, {layer.name + ":flat"});
    flat.attributes["axis"] = std::int64_t{1};
    from = layer.name + ":flat";
  }
  Names inputs{from, array(layer, ParameterRole::weight)};
  if (layer.as<FullyConnectedOptions>().bias) inputs.push_back(array(layer, ParameterRole::bias));
  node(layer, "Gemm", std::move(inputs)).attributes["transB"] = std::int64_t{is_turned(layer) ? 0 : 1};
}

void Raiser::raise_global_average(const Layer& layer) {
  const std::size_t rank = shape(layer).rank();
  if (rank == 2 || rank == 4) {
    node(layer, "GlobalAveragePool", {as_image(layer)});
    return;
  }
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 2; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  node(layer, "ReduceMean", {input(layer), whole_numbers(layer, "axes", std::move(axes))}, {layer.name + ":mean"})
      .attributes["keepdims"] = std::int64_t{1};
  reshaped(layer, layer.name + ":mean", sample_of(layer.outputs[0]), layer.name);
}

void Raiser::raise_pool(const Layer& layer) {
  const auto& options = layer.as<PoolOptions>();
  const bool average = layer.kind == LayerKind::average_pool;
  ForeignNode& made = node(layer, average ? "AveragePool" : "MaxPool", {as_image(layer)});
  give_window(made, options.window, true);
  made.attributes["ceil_mode"] = std::int64_t{options.round_up ? 1 : 0};
  if (average) made.attributes["count_include_pad"] = std::int64_t{options.count_padding ? 1 : 0};
}

void Raiser::raise_lrn(const Layer& layer) {
  const auto& options = layer.as<LrnOptions>();
  ForeignNode& made = node(layer, "LRN", {input(layer)});
  made.attributes = {{"size", options.size}, {"alpha", options.alpha}, {"beta", options.beta}, {"bias", options.k}};
}

void Raiser::raise_batch_norm(const Layer& layer) {
  const auto& options = layer.as<BatchNormOptions>();
  if (options.frozen_statistics) ++frozen_norms_;
  ForeignNode& made = node(layer, "BatchNormalization",
                           {input(layer), array(layer, ParameterRole::scale), array(layer, ParameterRole::shift),
                            array(layer, ParameterRole::running_mean), array(layer, ParameterRole::running_variance)});
  made.attributes = {{"epsilon", options.epsilon}, {"momentum", 1 - options.momentum}};
}

void Raiser::raise_group_norm(const Layer& layer) {
  const auto& options = layer.as<GroupNormOptions>();
  ForeignNode& made = node(layer, "GroupNormalization",
                           {input(layer), array(layer, ParameterRole::scale), array(layer, ParameterRole::shift)});
  made.attributes = {{"epsilon", options.epsilon}, {"num_groups", options.groups}};
}

void Raiser::raise_mean(const Layer& layer) {
  const auto& options = layer.as<MeanOptions>();
  const bool whole = !options.keep && options.axes.size() + 1 == shape(layer).rank();
  const std::string to = whole ? layer.name + ":mean" : layer.name;
  node(layer, "ReduceMean", {input(layer), whole_numbers(layer, "axes", options.axes)}, {to}).attributes["keepdims"] =
      std::int64_t{options.keep || whole ? 1 : 0};
  if (whole) reshaped(layer, to, {1}, layer.name);
}

void Raiser::raise_adaptive(const Layer& layer) {
  const auto& options = layer.as<AdaptivePoolOptions>();
  const Shape& x = shape(layer);
  if (x.height() % options.height != 0 || x.width() % options.width != 0)
    refuse(layer, fmt::format("averaging {}x{} to {}x{}", x.height(), x.width(), options.height, options.width));
  Window window;
  window.kernel_height = window.stride_height = x.height() / options.height;
  window.kernel_width = window.stride_width = x.width() / options.width;
  give_window(node(layer, "AveragePool", {input(layer)}), window, true);
}

}  // namespace tide
