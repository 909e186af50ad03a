#include "network/layer.h"

#include <array>

namespace tide {
namespace {

constexpr std::array<std::string_view, kLayerKinds> kNames = {
    "input",
    "convolution",
    "transposed_convolution",
    "fully_connected",
    "max_pool",
    "average_pool",
    "global_average_pool",
    "relu",
    "sigmoid",
    "tanh",
    "softmax_cross_entropy",
    "lrn",
    "batch_norm",
    "dropout",
    "add",
    "multiply",
    "concat",
    "split",
    "flatten",
    "fork",
};

}  // namespace

std::string_view kind_name(LayerKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<LayerKind> kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<LayerKind>(i);
  return std::nullopt;
}

Window Window::square(std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return {.kernel_height = kernel,
          .kernel_width = kernel,
          .stride_height = stride,
          .stride_width = stride,
          .pad_top = pad,
          .pad_left = pad,
          .pad_bottom = pad,
          .pad_right = pad};
}

Window Window::rectangle(std::int64_t kernel_height, std::int64_t kernel_width, std::int64_t pad_height,
                         std::int64_t pad_width) {
  return {.kernel_height = kernel_height,
          .kernel_width = kernel_width,
          .pad_top = pad_height,
          .pad_left = pad_width,
          .pad_bottom = pad_height,
          .pad_right = pad_width};
}

LayerOptions default_options(LayerKind kind) {
  switch (kind) {
    case LayerKind::input: return InputOptions{};
    case LayerKind::convolution:
    case LayerKind::transposed_convolution: return ConvolutionOptions{};
    case LayerKind::fully_connected: return FullyConnectedOptions{};
    case LayerKind::max_pool:
    case LayerKind::average_pool: return PoolOptions{};
    case LayerKind::softmax_cross_entropy: return SoftmaxOptions{};
    case LayerKind::lrn: return LrnOptions{};
    case LayerKind::batch_norm: return BatchNormOptions{};
    case LayerKind::dropout: return DropoutOptions{};
    case LayerKind::split: return SplitOptions{};
    case LayerKind::fork: return ForkOptions{};
    case LayerKind::global_average_pool:
    case LayerKind::relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::add:
    case LayerKind::multiply:
    case LayerKind::concat:
    case LayerKind::flatten: return NoOptions{};
  }
  return NoOptions{};
}

}  // namespace tide
