// Which kinds of layers there are, and the options of each. Everything else about a kind is its
// description (kind.h), a function of the Builder, and a kernel in each backend.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/shape.h"
#include "network/option_fields.h"

namespace tide {

// The list that all tables over kinds are made from: what a new entry lacks, the compiler or the
// linker calls by name. Numbers are in plan files, so new kinds go to the end.
// A fork copies its input once per consumer; the `superneurons` rule set makes it.
// clang-format off
#define TIDE_LAYER_KINDS(each) \
  each(input)                  \
  each(convolution)            \
  each(transposed_convolution) \
  each(fully_connected)        \
  each(max_pool)               \
  each(average_pool)           \
  each(global_average_pool)    \
  each(relu)                   \
  each(sigmoid)                \
  each(tanh)                   \
  each(softmax_cross_entropy)  \
  each(lrn)                    \
  each(batch_norm)             \
  each(dropout)                \
  each(add)                    \
  each(multiply)               \
  each(concat)                 \
  each(split)                  \
  each(flatten)                \
  each(fork)                   \
  each(group_norm)
// clang-format on

enum class LayerKind : std::uint8_t {
#define TIDE_ENUMERATOR(kind) kind,
  TIDE_LAYER_KINDS(TIDE_ENUMERATOR)
#undef TIDE_ENUMERATOR
};
#define TIDE_ONE(kind) +1
inline constexpr int kLayerKinds = 0 TIDE_LAYER_KINDS(TIDE_ONE);
#undef TIDE_ONE
inline constexpr auto kLastLayerKind = static_cast<LayerKind>(kLayerKinds - 1);

[[nodiscard]] std::string_view kind_name(LayerKind kind);
// The kind of that name, or nothing.
[[nodiscard]] std::optional<LayerKind> kind_from_name(std::string_view name);

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
  static constexpr auto fields() {
    using Self = SoftmaxOptions;
    return std::tuple(field("label_smoothing", &Self::label_smoothing, FieldUse::written),
                      field("weight", &Self::weight, FieldUse::written),
                      field("label_offset", &Self::label_offset, FieldUse::written));
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
  double momentum = 0.1;  // weight of the new batch in the running statistics
  // Of fused layers (step/fuse.h): y = max(0, normalized x + second input, where there is one).
  bool relu = false;
  static constexpr auto fields() {
    using Self = BatchNormOptions;
    return std::tuple(field("epsilon", &Self::epsilon, FieldUse::written),
                      field("momentum", &Self::momentum, FieldUse::written),
                      field("relu", &Self::relu, FieldUse::made));
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

using LayerOptions =
    std::variant<NoOptions, InputOptions, ConvolutionOptions, FullyConnectedOptions, PoolOptions, SoftmaxOptions,
                 LrnOptions, BatchNormOptions, DropoutOptions, SplitOptions, ForkOptions, GroupNormOptions>;

// Whether both are options of one kind with equal values.
[[nodiscard]] bool equal_options(const LayerOptions& a, const LayerOptions& b);

}  // namespace tide
