// Builds a network in code, one call per layer. Shapes are inferred at each call, and an
// Error that names the layer is thrown where they do not fit.
//
//   Builder net("small");
//   Value x = net.input({1, 1, 8, 8});
//   x = net.relu(net.convolution(x, {.channels = 32, .window = Window::square(3, 1, 1)}));
//   net.softmax_cross_entropy(net.fully_connected(x, {.channels = 10}));
//   Network network = std::move(net).build();
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "network/network.h"

namespace tide {

struct NewParameter;

class Builder {
 public:
  explicit Builder(std::string name);

  // Every layer takes an optional name; without one it gets "kind" + a running number.
  Value input(const Shape& sample, std::string name = "") {
    return one(LayerKind::input, {}, InputOptions{sample}, std::move(name));
  }
  Value convolution(Value x, const ConvolutionOptions& options, std::string name = "") {
    return one(LayerKind::convolution, {x}, options, std::move(name));
  }
  Value transposed_convolution(Value x, const ConvolutionOptions& options, std::string name = "") {
    return one(LayerKind::transposed_convolution, {x}, options, std::move(name));
  }
  // Flattens its input in memory order (height, width, channels).
  Value fully_connected(Value x, const FullyConnectedOptions& options, std::string name = "") {
    return one(LayerKind::fully_connected, {x}, options, std::move(name));
  }
  Value max_pool(Value x, const PoolOptions& options, std::string name = "") {
    return one(LayerKind::max_pool, {x}, options, std::move(name));
  }
  Value average_pool(Value x, const PoolOptions& options, std::string name = "") {
    return one(LayerKind::average_pool, {x}, options, std::move(name));
  }
  Value global_average_pool(Value x, std::string name = "") {
    return one(LayerKind::global_average_pool, {x}, NoOptions{}, std::move(name));
  }
  Value relu(Value x, std::string name = "") { return one(LayerKind::relu, {x}, NoOptions{}, std::move(name)); }
  Value sigmoid(Value x, std::string name = "") { return one(LayerKind::sigmoid, {x}, NoOptions{}, std::move(name)); }
  Value tanh(Value x, std::string name = "") { return one(LayerKind::tanh, {x}, NoOptions{}, std::move(name)); }
  // A softmax over the channels at every position, and the mean cross-entropy.
  Value softmax_cross_entropy(Value x, const SoftmaxOptions& options = {}, std::string name = "") {
    return one(LayerKind::softmax_cross_entropy, {x}, options, std::move(name));
  }
  Value lrn(Value x, const LrnOptions& options = {}, std::string name = "") {
    return one(LayerKind::lrn, {x}, options, std::move(name));
  }
  Value batch_norm(Value x, const BatchNormOptions& options = {}, std::string name = "") {
    return one(LayerKind::batch_norm, {x}, options, std::move(name));
  }
  Value group_norm(Value x, const GroupNormOptions& options, std::string name = "") {
    return one(LayerKind::group_norm, {x}, options, std::move(name));
  }
  Value dropout(Value x, const DropoutOptions& options = {}, std::string name = "") {
    return one(LayerKind::dropout, {x}, options, std::move(name));
  }
  Value add(std::vector<Value> inputs, std::string name = "") {
    return one(LayerKind::add, std::move(inputs), NoOptions{}, std::move(name));
  }
  Value multiply(Value a, Value b, std::string name = "") {
    return one(LayerKind::multiply, {a, b}, NoOptions{}, std::move(name));
  }
  Value concat(std::vector<Value> inputs, std::string name = "") {
    return one(LayerKind::concat, std::move(inputs), NoOptions{}, std::move(name));
  }
  Value activation(Value x, const ActivationOptions& options, std::string name = "") {
    return one(LayerKind::activation, {x}, options, std::move(name));
  }
  // With the numbers that the function usually has.
  Value activation(Value x, ActivationFunction function, std::string name = "") {
    return activation(x, ActivationOptions::of(function), std::move(name));
  }
  // Extents behind the batch may be 1 in one of the two.
  Value combine(Value a, Value b, CombineFunction function, std::string name = "") {
    return one(LayerKind::combine, {a, b}, CombineOptions{function}, std::move(name));
  }
  Value scale(Value x, const ScaleOptions& options = {}, std::string name = "") {
    return one(LayerKind::scale, {x}, options, std::move(name));
  }
  Value mean(Value x, const MeanOptions& options, std::string name = "") {
    return one(LayerKind::mean, {x}, options, std::move(name));
  }
  Value adaptive_average_pool(Value x, const AdaptivePoolOptions& options, std::string name = "") {
    return one(LayerKind::adaptive_average_pool, {x}, options, std::move(name));
  }
  Value resize(Value x, const ResizeOptions& options, std::string name = "") {
    return one(LayerKind::resize, {x}, options, std::move(name));
  }
  Value pad(Value x, const PadOptions& options, std::string name = "") {
    return one(LayerKind::pad, {x}, options, std::move(name));
  }
  Value channel_shuffle(Value x, std::int64_t groups, std::string name = "") {
    return one(LayerKind::channel_shuffle, {x}, ShuffleOptions{groups}, std::move(name));
  }
  Value transpose(Value x, std::vector<std::int64_t> axes, std::string name = "") {
    return one(LayerKind::transpose, {x}, TransposeOptions{std::move(axes)}, std::move(name));
  }
  // The elements keep their row-major order.
  Value reshape(Value x, const Shape& sample, std::string name = "") {
    return one(LayerKind::reshape, {x}, ReshapeOptions{sample}, std::move(name));
  }
  Value drop_path(Value x, const DropPathOptions& options = {}, std::string name = "") {
    return one(LayerKind::drop_path, {x}, options, std::move(name));
  }
  Value softmax(Value x, const SoftmaxAxisOptions& options = {}, std::string name = "") {
    return one(LayerKind::softmax, {x}, options, std::move(name));
  }
  Value l2_normalize(Value x, const L2NormalizeOptions& options = {}, std::string name = "") {
    return one(LayerKind::l2_normalize, {x}, options, std::move(name));
  }
  Value sigmoid_cross_entropy(Value x, const ElementLossOptions& options = {}, std::string name = "") {
    return one(LayerKind::sigmoid_cross_entropy, {x}, options, std::move(name));
  }
  Value mean_squared_error(Value x, const ElementLossOptions& options = {}, std::string name = "") {
    return one(LayerKind::mean_squared_error, {x}, options, std::move(name));
  }
  std::vector<Value> split(Value x, std::vector<std::int64_t> channels, std::string name = "");
  Value flatten(Value x, std::string name = "") { return one(LayerKind::flatten, {x}, NoOptions{}, std::move(name)); }

  // The general form; the calls above are made of it.
  LayerId layer(LayerKind kind, std::vector<Value> inputs, LayerOptions options, std::string name = "");
  // The next layer uses the parameters of the layer that made `value` (same kind, same
  // shapes). Running statistics are not shared: every batch norm keeps its own.
  Builder& sharing(Value value);
  // Layers added while frozen are not trained.
  Builder& freeze(bool frozen = true);
  // The layer that made `value` may be recomputed `count` times (sublinear policy).
  Builder& mirror(Value value, int count);

  [[nodiscard]] const Shape& shape(Value value) const { return network_.shape(value); }
  [[nodiscard]] const Network& so_far() const { return network_; }
  // Checks the whole (one input, nothing left dangling) and hands the network over.
  [[nodiscard]] Network build() &&;

 private:
  Value one(LayerKind kind, std::vector<Value> inputs, LayerOptions options, std::string name) {
    return {layer(kind, std::move(inputs), std::move(options), std::move(name))};
  }
  void check_value(Value value, const std::string& user) const;
  // In parameters.cpp: new ones, or those of share_from_.
  void make_parameters(Layer& layer, const Shape& input);
  void share_parameters(Layer& layer, const std::vector<NewParameter>& wanted) const;

  Network network_;
  std::unordered_set<std::string> names_;
  std::vector<std::size_t> counters_;
  LayerId share_from_;
  bool frozen_ = false;
};

}  // namespace tide
