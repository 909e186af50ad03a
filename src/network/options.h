// The options of each kind of layer, as structs whose fields are listed once (option_fields.h).
#pragma once

#include <variant>
#include <vector>

#include "base/shape.h"
#include "network/option_enums.h"
#include "network/option_fields.h"

namespace tide {

// A sliding window, for convolutions and pools. Padding is zeros (convolution, average)
// or nothing (max).
struct Window {
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::int64_t dilation_height = 1, dilation_width = 1;

  // The usual square window.
  static Window square(std::int64_t kernel, std::int64_t stride = 1, std::int64_t pad = 0);
  // A non-square kernel with stride 1 and padding on both sides.
  static Window rectangle(std::int64_t kernel_height, std::int64_t kernel_width, std::int64_t pad_height,
                          std::int64_t pad_width);
  friend bool operator==(const Window&, const Window&) = default;
};

struct NoOptions {
  static constexpr auto fields() { return std::tuple(); }
};
struct InputOptions {
  Shape sample;  // batch 1
  static constexpr auto fields() { return std::tuple(field("sample", &InputOptions::sample, FieldUse::required)); }
};
struct ConvolutionOptions {   // transposed convolution too
  std::int64_t channels = 0;  // of the output
  Window window = {};
  std::int64_t groups = 1;
  bool bias = true;
  static constexpr auto fields() {
    using Self = ConvolutionOptions;
    return std::tuple(
        field("channels", &Self::channels, FieldUse::required), field("window", &Self::window, FieldUse::required),
        field("groups", &Self::groups, FieldUse::optional), field("bias", &Self::bias, FieldUse::optional));
  }
};
struct FullyConnectedOptions {
  std::int64_t channels = 0;
  bool bias = true;
  static constexpr auto fields() {
    using Self = FullyConnectedOptions;
    return std::tuple(field("channels", &Self::channels, FieldUse::required),
                      field("bias", &Self::bias, FieldUse::optional));
  }
};
struct PoolOptions {
  Window window = {};
  bool round_up = false;       // ceil instead of floor for the output size
  bool count_padding = false;  // average pool: divide by the full window
  static constexpr auto fields() {
    using Self = PoolOptions;
    return std::tuple(field("window", &Self::window, FieldUse::required),
                      field("round_up", &Self::round_up, FieldUse::optional),
                      field("count_padding", &Self::count_padding, FieldUse::optional));
  }
};
struct SoftmaxOptions {
  double label_smoothing = 0;
  double weight = 1;              // of this loss in the sum of all losses
  std::int64_t label_offset = 0;  // position of its first label within a sample's labels
  bool soft = false;              // labels are the wanted probabilities of all classes, floats in their 32 bits
  bool counted = false;           // the mean is over the labels that count: those that are classes
  static constexpr auto fields() {
    using Self = SoftmaxOptions;
    return std::tuple(field("label_smoothing", &Self::label_smoothing, FieldUse::written),
                      field("weight", &Self::weight, FieldUse::written),
                      field("label_offset", &Self::label_offset, FieldUse::written),
                      field("soft", &Self::soft, FieldUse::optional),
                      field("counted", &Self::counted, FieldUse::optional));
  }
};
struct LrnOptions {  // y = x / (k + alpha / size * sum of squares over `size` channels) ^ beta
  std::int64_t size = 5;
  double alpha = 1e-4, beta = 0.75, k = 2;
  static constexpr auto fields() {
    using Self = LrnOptions;
    return std::tuple(field("size", &Self::size, FieldUse::written), field("alpha", &Self::alpha, FieldUse::written),
                      field("beta", &Self::beta, FieldUse::written), field("k", &Self::k, FieldUse::written));
  }
};
struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;           // weight of the new batch in the running statistics
  bool frozen_statistics = false;  // the running ones are used in training too, and stay as they are
  // Of fused layers (step/fuse.h): y = fused(normalized x + second input, where there is one).
  FusedFunction fused = FusedFunction::none;
  double fused_minimum = 0, fused_maximum = 0;  // of a clip
  static constexpr auto fields() {
    using Self = BatchNormOptions;
    return std::tuple(
        field("epsilon", &Self::epsilon, FieldUse::written), field("momentum", &Self::momentum, FieldUse::written),
        field("frozen_statistics", &Self::frozen_statistics, FieldUse::optional),
        field("fused", &Self::fused, FieldUse::made), field("fused_minimum", &Self::fused_minimum, FieldUse::made),
        field("fused_maximum", &Self::fused_maximum, FieldUse::made));
  }
};
struct DropoutOptions {
  double rate = 0.5;
  std::int64_t stream = -1;  // of random numbers; -1: the layer's number
  static constexpr auto fields() {
    using Self = DropoutOptions;
    return std::tuple(field("rate", &Self::rate, FieldUse::written), field("stream", &Self::stream, FieldUse::derived));
  }
};
struct SplitOptions {
  std::vector<std::int64_t> channels;  // of each output; their sum is the input's
  static constexpr auto fields() { return std::tuple(field("channels", &SplitOptions::channels, FieldUse::written)); }
};
struct ForkOptions {
  std::int64_t branches = 0;
  static constexpr auto fields() { return std::tuple(field("branches", &ForkOptions::branches, FieldUse::required)); }
};
struct GroupNormOptions {
  std::int64_t groups = 1;  // of neighbouring channels
  double epsilon = 1e-5;
  static constexpr auto fields() {
    using Self = GroupNormOptions;
    return std::tuple(field("groups", &Self::groups, FieldUse::required),
                      field("epsilon", &Self::epsilon, FieldUse::written));
  }
};

struct ActivationOptions {
  ActivationFunction function = ActivationFunction::silu;
  double alpha = 0, beta = 0;
  // With the numbers that this function usually has.
  static ActivationOptions of(ActivationFunction function);
  static constexpr auto fields() {
    using Self = ActivationOptions;
    return std::tuple(field("function", &Self::function, FieldUse::required),
                      field("alpha", &Self::alpha, FieldUse::written), field("beta", &Self::beta, FieldUse::written));
  }
};
struct CombineOptions {
  CombineFunction function = CombineFunction::add;
  static constexpr auto fields() {
    return std::tuple(field("function", &CombineOptions::function, FieldUse::required));
  }
};
struct ScaleOptions {  // y = x * weight + bias, with parameters over some axes
  std::vector<std::int64_t> axes = {1};
  bool weight = true, bias = false;
  static constexpr auto fields() {
    using Self = ScaleOptions;
    return std::tuple(field("axes", &Self::axes, FieldUse::written), field("weight", &Self::weight, FieldUse::optional),
                      field("bias", &Self::bias, FieldUse::optional));
  }
};
struct MeanOptions {
  std::vector<std::int64_t> axes = {};
  bool keep = false;  // the axes, with extent 1
  static constexpr auto fields() {
    using Self = MeanOptions;
    return std::tuple(field("axes", &Self::axes, FieldUse::required), field("keep", &Self::keep, FieldUse::written));
  }
};
struct AdaptivePoolOptions {
  std::int64_t height = 1, width = 1;  // of the output
  static constexpr auto fields() {
    using Self = AdaptivePoolOptions;
    return std::tuple(field("height", &Self::height, FieldUse::required),
                      field("width", &Self::width, FieldUse::required));
  }
};
struct ResizeOptions {
  std::int64_t height = 0, width = 0;  // of the output
  ResizeMode mode = ResizeMode::bilinear;
  ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
  double scale_height = 0, scale_width = 0;  // output to input; 0: what the extents say
  static constexpr auto fields() {
    using Self = ResizeOptions;
    return std::tuple(field("height", &Self::height, FieldUse::required),
                      field("width", &Self::width, FieldUse::required), field("mode", &Self::mode, FieldUse::written),
                      field("coordinates", &Self::coordinates, FieldUse::written),
                      field("scale_height", &Self::scale_height, FieldUse::optional),
                      field("scale_width", &Self::scale_width, FieldUse::optional));
  }
};
struct PadOptions {
  std::vector<std::int64_t> before = {}, after = {};  // of each axis behind the batch; below 0: cut off
  PadMode mode = PadMode::constant;
  double value = 0;
  static constexpr auto fields() {
    using Self = PadOptions;
    return std::tuple(field("before", &Self::before, FieldUse::required),
                      field("after", &Self::after, FieldUse::required), field("mode", &Self::mode, FieldUse::written),
                      field("value", &Self::value, FieldUse::optional));
  }
};
struct ShuffleOptions {
  std::int64_t groups = 1;  // channel k of group g goes to place k * groups + g
  static constexpr auto fields() { return std::tuple(field("groups", &ShuffleOptions::groups, FieldUse::required)); }
};
struct TransposeOptions {
  std::vector<std::int64_t> axes = {};  // of the input, in the order of the output; the batch first
  static constexpr auto fields() { return std::tuple(field("axes", &TransposeOptions::axes, FieldUse::required)); }
};
struct ReshapeOptions {
  Shape sample;  // batch 1; elements keep their row-major order
  static constexpr auto fields() { return std::tuple(field("sample", &ReshapeOptions::sample, FieldUse::required)); }
};
struct DropPathOptions {
  double rate = 0.1;
  bool per_channel = false;  // whole channels of samples, not whole samples
  std::int64_t stream = -1;  // of random numbers; -1: the layer's number
  static constexpr auto fields() {
    using Self = DropPathOptions;
    return std::tuple(field("rate", &Self::rate, FieldUse::written),
                      field("per_channel", &Self::per_channel, FieldUse::optional),
                      field("stream", &Self::stream, FieldUse::derived));
  }
};
struct SoftmaxAxisOptions {
  std::int64_t axis = 1;
  static constexpr auto fields() { return std::tuple(field("axis", &SoftmaxAxisOptions::axis, FieldUse::optional)); }
};
struct L2NormalizeOptions {  // y = x / max(norm over the axis, epsilon)
  std::int64_t axis = 1;
  double epsilon = 1e-12;
  static constexpr auto fields() {
    using Self = L2NormalizeOptions;
    return std::tuple(field("axis", &Self::axis, FieldUse::optional),
                      field("epsilon", &Self::epsilon, FieldUse::written));
  }
};
// Of losses that compare element by element. Their targets are floats, kept in the 32 bits of a label each.
struct ElementLossOptions {
  double weight = 1;              // of this loss in the sum of all losses
  std::int64_t label_offset = 0;  // position of its first target within a sample's labels
  static constexpr auto fields() {
    using Self = ElementLossOptions;
    return std::tuple(field("weight", &Self::weight, FieldUse::written),
                      field("label_offset", &Self::label_offset, FieldUse::written));
  }
};

using LayerOptions =
    std::variant<NoOptions, InputOptions, ConvolutionOptions, FullyConnectedOptions, PoolOptions, SoftmaxOptions,
                 LrnOptions, BatchNormOptions, DropoutOptions, SplitOptions, ForkOptions, GroupNormOptions,
                 ActivationOptions, CombineOptions, ScaleOptions, MeanOptions, AdaptivePoolOptions, ResizeOptions,
                 PadOptions, ShuffleOptions, TransposeOptions, ReshapeOptions, DropPathOptions, SoftmaxAxisOptions,
                 L2NormalizeOptions, ElementLossOptions>;

// Whether both are options of one kind with equal values.
[[nodiscard]] bool equal_options(const LayerOptions& a, const LayerOptions& b);
// The stream of random numbers that a layer with these options names; null where it draws none.
[[nodiscard]] std::int64_t* random_stream(LayerOptions& options);
[[nodiscard]] const std::int64_t* random_stream(const LayerOptions& options);

}  // namespace tide
