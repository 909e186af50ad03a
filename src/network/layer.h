// What a network is made of: layers with their options, connected by values. A value is
// one output of one layer; most layers have one output, split and fork have several.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/shape.h"

namespace tide {

enum class LayerKind : std::uint8_t {
  input,
  convolution,
  transposed_convolution,
  fully_connected,
  max_pool,
  average_pool,
  global_average_pool,
  relu,
  sigmoid,
  tanh,
  softmax_cross_entropy,
  lrn,
  batch_norm,
  dropout,
  add,
  multiply,
  concat,
  split,
  flatten,
  fork,  // copies its input once per consumer; made by the `superneurons` rule set
};
inline constexpr int kLayerKinds = static_cast<int>(LayerKind::fork) + 1;

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

struct InputOptions {
  Shape sample;  // batch 1
};
struct ConvolutionOptions {   // transposed convolution too
  std::int64_t channels = 0;  // of the output
  Window window = {};
  std::int64_t groups = 1;
  bool bias = true;
};
struct FullyConnectedOptions {
  std::int64_t channels = 0;
  bool bias = true;
};
struct PoolOptions {
  Window window = {};
  bool round_up = false;       // ceil instead of floor for the output size
  bool count_padding = false;  // average pool: divide by the full window
};
struct SoftmaxOptions {
  double label_smoothing = 0;
  double weight = 1;              // of this loss in the sum of all losses
  std::int64_t label_offset = 0;  // position of its first label within a sample's labels
};
struct LrnOptions {  // y = x / (k + alpha / size * sum of squares over `size` channels) ^ beta
  std::int64_t size = 5;
  double alpha = 1e-4, beta = 0.75, k = 2;
};
struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of the new batch in the running statistics
  // Of fused layers (step/fuse.h): y = max(0, normalized x + second input, where there is one).
  bool relu = false;
};
struct DropoutOptions {
  double rate = 0.5;
  std::int64_t stream = -1;  // of random numbers; -1: the layer's number
};
struct SplitOptions {
  std::vector<std::int64_t> channels;  // of each output; their sum is the input's
};
struct ForkOptions {
  std::int64_t branches = 0;
};
struct NoOptions {};

using LayerOptions =
    std::variant<NoOptions, InputOptions, ConvolutionOptions, FullyConnectedOptions, PoolOptions, SoftmaxOptions,
                 LrnOptions, BatchNormOptions, DropoutOptions, SplitOptions, ForkOptions>;

// The defaults of a kind's options: says which alternative of LayerOptions the kind takes.
[[nodiscard]] LayerOptions default_options(LayerKind kind);

// One output of one layer.
struct Value {
  LayerId layer;
  std::int32_t output = 0;
  friend auto operator<=>(const Value&, const Value&) = default;
};

struct Layer {
  LayerKind kind = LayerKind::input;
  std::string name;
  std::vector<Value> inputs;
  LayerOptions options;
  std::vector<Shape> outputs;           // sample shapes, batch 1
  std::vector<ParameterId> parameters;  // weight, bias; or scale, shift (batch norm)
  std::vector<ParameterId> statistics;  // running mean and variance (batch norm)
  bool frozen = false;                  // its parameters are not trained
  int mirror = 0;                       // how often its output may be recomputed (sublinear policy)

  template <typename Options>
  [[nodiscard]] const Options& as() const {
    return std::get<Options>(options);
  }
};

// What a parameter is used as. `shape` is the logical order (see Shape); a backend may
// keep another.
enum class ParameterRole : std::uint8_t { weight, bias, scale, shift, running_mean, running_variance };

struct Parameter {
  std::string name;
  ParameterRole role = ParameterRole::weight;
  Shape shape;
  std::int64_t fan_in = 1;  // for initialization
  bool frozen = false;      // true if every layer that uses it is frozen; statistics are never trained
};

}  // namespace tide
