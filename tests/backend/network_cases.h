// Small networks, one per operator and corner case. Each starts with a 1x1 convolution,
// so that the gradient of everything behind it reaches a parameter, and ends in a loss.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "network/builder.h"

namespace tide::test {

struct NetworkCase {
  std::string name;
  std::int64_t batch = 2;
  Shape sample{1, 3, 7, 6};
  std::function<Value(Builder&, Value)> body;

  [[nodiscard]] NetworkPtr network(const SoftmaxOptions& loss = {}) const {
    Builder builder(name);
    Value x = builder.convolution(builder.input(sample), {.channels = sample.channels()});
    builder.softmax_cross_entropy(body(builder, x), loss);
    return std::make_shared<const Network>(std::move(builder).build());
  }
  friend std::ostream& operator<<(std::ostream& out, const NetworkCase& c) { return out << c.name; }
};

inline Window window(std::int64_t height, std::int64_t width, std::int64_t stride_height, std::int64_t stride_width,
                     std::int64_t top, std::int64_t left, std::int64_t bottom, std::int64_t right,
                     std::int64_t dilation_height = 1, std::int64_t dilation_width = 1) {
  return {height, width, stride_height, stride_width, top, left, bottom, right, dilation_height, dilation_width};
}

inline std::vector<NetworkCase> convolution_cases() {
  const auto layer = [](ConvolutionOptions options) {
    return [options](Builder& net, Value x) { return net.convolution(x, options); };
  };
  const auto transposed = [](ConvolutionOptions options) {
    return [options](Builder& net, Value x) { return net.transposed_convolution(x, options); };
  };
  return {
      {"conv_3x3", 2, {1, 3, 7, 6}, layer({.channels = 5, .window = Window::square(3, 1, 1)})},
      {"conv_no_bias", 3, {1, 4, 5, 5}, layer({.channels = 7, .window = Window::square(3, 1, 1), .bias = false})},
      {"conv_1x1_wide", 1, {1, 16, 5, 5}, layer({.channels = 33})},
      {"conv_1x1_stride", 2, {1, 6, 7, 7}, layer({.channels = 17, .window = Window::square(1, 2, 0)})},
      {"conv_stride", 3, {1, 5, 9, 8}, layer({.channels = 3, .window = window(3, 3, 2, 3, 1, 1, 1, 1)})},
      {"conv_rectangle", 2, {1, 3, 7, 9}, layer({.channels = 4, .window = Window::rectangle(1, 7, 0, 3)})},
      {"conv_asymmetric_padding", 2, {1, 3, 8, 7}, layer({.channels = 6, .window = window(3, 2, 2, 1, 0, 1, 1, 0)})},
      {"conv_dilated", 2, {1, 4, 9, 9}, layer({.channels = 5, .window = window(3, 3, 1, 1, 2, 1, 2, 1, 2, 1)})},
      {"conv_groups", 2, {1, 6, 6, 5}, layer({.channels = 9, .window = Window::square(3, 1, 1), .groups = 3})},
      {"conv_groups_16", 1, {1, 32, 5, 5}, layer({.channels = 32, .window = Window::square(3, 1, 1), .groups = 2})},
      {"conv_depthwise", 2, {1, 7, 6, 7}, layer({.channels = 7, .window = Window::square(3, 2, 1), .groups = 7})},
      {"conv_depthwise_multiplier",
       2,
       {1, 5, 6, 6},
       layer({.channels = 10, .window = Window::square(3, 1, 1), .groups = 5, .bias = false})},
      {"conv_blocks", 2, {1, 32, 6, 6}, layer({.channels = 48, .window = Window::square(3, 1, 1)})},
      {"conv_7x7", 1, {1, 3, 17, 17}, layer({.channels = 16, .window = Window::square(7, 2, 3)})},
      {"conv_whole_image", 2, {1, 5, 4, 4}, layer({.channels = 6, .window = Window::square(4)})},
      {"transposed", 2, {1, 5, 4, 5}, transposed({.channels = 3, .window = Window::square(4, 2, 1)})},
      {"transposed_no_bias",
       1,
       {1, 3, 5, 5},
       transposed({.channels = 6, .window = window(3, 2, 2, 1, 1, 0, 0, 1), .bias = false})},
      {"transposed_groups",
       2,
       {1, 6, 4, 4},
       transposed({.channels = 4, .window = Window::square(3, 2, 1), .groups = 2})},
      {"transposed_dilated",
       2,
       {1, 3, 4, 4},
       transposed({.channels = 5, .window = window(2, 3, 1, 2, 0, 1, 1, 0, 2, 1)})},
      {"transposed_wide", 1, {1, 32, 4, 4}, transposed({.channels = 16, .window = Window::square(4, 2, 1)})},
      {"fully_connected",
       3,
       {1, 5, 3, 2},
       [](Builder& net, Value x) { return net.fully_connected(x, {.channels = 7}); }},
      {"fully_connected_no_bias",
       1,
       {1, 4, 2, 3},
       [](Builder& net, Value x) { return net.fully_connected(x, {.channels = 19, .bias = false}); }},
      {"fully_connected_flat",
       2,
       {1, 5, 3, 2},
       [](Builder& net, Value x) { return net.fully_connected(net.flatten(x), {.channels = 33}); }},
      {"conv_shared",
       2,
       {1, 4, 6, 6},
       [](Builder& net, Value x) {
         const ConvolutionOptions options{.channels = 4, .window = Window::square(3, 1, 1)};
         const Value first = net.convolution(x, options), second = net.relu(first);
         return net.sharing(first).convolution(second, options);
       }},
      {"conv_shared_between_sizes",
       2,
       {1, 20, 8, 8},
       [](Builder& net, Value x) {
         const ConvolutionOptions options{.channels = 20, .window = Window::square(3, 2, 1)};
         const Value first = net.convolution(x, options);
         return net.sharing(first).convolution(first, options);
       }},
      {"fully_connected_shared",
       3,
       {1, 6, 1, 1},
       [](Builder& net, Value x) {
         const Value first = net.fully_connected(x, {.channels = 6}), second = net.tanh(first);
         return net.sharing(first).fully_connected(second, {.channels = 6});
       }},
  };
}

inline std::vector<NetworkCase> pool_cases() {
  const auto maximum = [](PoolOptions options) {
    return [options](Builder& net, Value x) { return net.max_pool(x, options); };
  };
  const auto average = [](PoolOptions options) {
    return [options](Builder& net, Value x) { return net.average_pool(x, options); };
  };
  return {
      {"max_pool", 2, {1, 5, 6, 8}, maximum({.window = Window::square(2, 2)})},
      {"max_pool_overlapping", 2, {1, 3, 9, 9}, maximum({.window = Window::square(3, 2, 1)})},
      {"max_pool_round_up", 3, {1, 2, 6, 7}, maximum({.window = Window::square(3, 2), .round_up = true})},
      {"max_pool_rectangle", 1, {1, 7, 7, 8}, maximum({.window = window(2, 3, 1, 2, 0, 1, 1, 0)})},
      {"max_pool_dilated", 2, {1, 3, 9, 8}, maximum({.window = window(3, 2, 2, 1, 1, 0, 1, 0, 2, 3)})},
      {"max_pool_gaps", 2, {1, 4, 9, 9}, maximum({.window = Window::square(2, 3)})},
      {"max_pool_many_channels", 1, {1, 131, 5, 5}, maximum({.window = Window::square(3, 1, 1)})},
      {"max_pool_256_positions", 1, {1, 2, 17, 18}, maximum({.window = Window::square(16, 1)})},
      {"max_pool_of_ties",
       2,
       {1, 3, 8, 8},
       [](Builder& net, Value x) { return net.max_pool(net.relu(x), {.window = Window::square(3, 2)}); }},
      {"average_pool", 2, {1, 5, 6, 8}, average({.window = Window::square(2, 2)})},
      {"average_pool_padded", 2, {1, 3, 7, 9}, average({.window = Window::square(3, 2, 1)})},
      {"average_pool_count_padding",
       2,
       {1, 3, 7, 9},
       average({.window = Window::square(3, 2, 1), .count_padding = true})},
      {"average_pool_round_up",
       2,
       {1, 3, 6, 8},
       average({.window = window(3, 3, 2, 2, 1, 1, 1, 1), .round_up = true, .count_padding = true})},
      {"average_pool_asymmetric", 1, {1, 4, 6, 5}, average({.window = window(3, 2, 2, 1, 0, 1, 2, 0)})},
      {"global_average_pool", 3, {1, 7, 5, 3}, [](Builder& net, Value x) { return net.global_average_pool(x); }},
      {"global_average_pool_large",
       1,
       {1, 3, 23, 19},
       [](Builder& net, Value x) { return net.global_average_pool(x); }},
  };
}

inline std::vector<NetworkCase> pointwise_cases() {
  return {
      {"relu", 2, {1, 3, 7, 6}, [](Builder& net, Value x) { return net.relu(x); }},
      {"sigmoid", 3, {1, 3, 5, 6}, [](Builder& net, Value x) { return net.sigmoid(x); }},
      {"tanh", 1, {1, 5, 7, 3}, [](Builder& net, Value x) { return net.tanh(x); }},
      {"dropout", 3, {1, 3, 5, 7}, [](Builder& net, Value x) { return net.dropout(x, {.rate = 0.3}); }},
      {"dropout_large", 2, {1, 64, 9, 8}, [](Builder& net, Value x) { return net.dropout(x); }},
      {"add",
       2,
       {1, 3, 5, 5},
       [](Builder& net, Value x) {
         return net.add({x, net.tanh(x)});
       }},
      {"add_three",
       2,
       {1, 3, 5, 5},
       [](Builder& net, Value x) {
         return net.add({net.tanh(x), net.sigmoid(x), net.relu(x)});
       }},
      {"multiply", 2, {1, 3, 5, 5}, [](Builder& net, Value x) { return net.multiply(net.tanh(x), net.sigmoid(x)); }},
      {"square", 2, {1, 3, 5, 5}, [](Builder& net, Value x) { return net.multiply(x, x); }},
      {"concat",
       2,
       {1, 3, 5, 4},
       [](Builder& net, Value x) {
         return net.concat({net.tanh(x), net.convolution(x, {.channels = 5}), net.sigmoid(x)});
       }},
      {"split",
       2,
       {1, 7, 5, 4},
       [](Builder& net, Value x) {
         const std::vector<Value> parts = net.split(x, {2, 4, 1});
         return net.concat({net.tanh(parts[2]), parts[0], net.sigmoid(parts[1])});
       }},
      {"gates",
       3,
       {1, 12, 1, 1},
       [](Builder& net, Value x) {
         const std::vector<Value> parts = net.split(net.fully_connected(x, {.channels = 12}), {4, 4, 4});
         return net.multiply(net.sigmoid(parts[0]), net.tanh(net.multiply(net.sigmoid(parts[1]), net.tanh(parts[2]))));
       }},
  };
}

// A batch norm right behind a bias would leave that bias a gradient of zero: hence the tanh.
inline std::vector<NetworkCase> normalization_cases() {
  return {
      {"batch_norm", 3, {1, 5, 4, 3}, [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); }},
      {"batch_norm_one_sample",
       1,
       {1, 3, 7, 6},
       [](Builder& net, Value x) { return net.batch_norm(net.tanh(x), {.epsilon = 1e-3, .momentum = 0.25}); }},
      {"batch_norm_vector", 3, {1, 37, 1, 1}, [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); }},
      {"batch_norm_large", 2, {1, 3, 40, 41}, [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); }},
      {"batch_norm_shared",
       2,
       {1, 3, 5, 5},
       [](Builder& net, Value x) {
         const Value first = net.batch_norm(net.tanh(x)), second = net.tanh(first);
         return net.sharing(first).batch_norm(second);
       }},
      {"lrn", 2, {1, 7, 4, 3}, [](Builder& net, Value x) { return net.lrn(x, {.size = 5, .alpha = 0.5}); }},
      {"lrn_two_channels",
       2,
       {1, 2, 4, 3},
       [](Builder& net, Value x) { return net.lrn(x, {.size = 5, .alpha = 1.5, .beta = 0.75, .k = 1}); }},
      {"lrn_other_power",
       1,
       {1, 19, 3, 3},
       [](Builder& net, Value x) { return net.lrn(x, {.size = 3, .alpha = 0.7, .beta = 0.6, .k = 1}); }},
  };
}

// What is fused with a batch norm, by channels: one at a time, or several in one load.
inline std::vector<NetworkCase> fused_cases() {
  using Body = std::function<Value(Builder&, Value)>;
  const auto norm = [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); };
  const auto joined = [=](Builder& net, Value x) { return net.add({norm(net, x), x}); };
  const auto consumed = [](Builder& net, Value y, bool thrice = false) {
    return thrice ? net.add({net.tanh(y), net.sigmoid(y), net.relu(y)}) : net.add({net.tanh(y), net.sigmoid(y)});
  };
  const std::vector<std::pair<std::string, Body>> bodies{
      {"relu", [=](Builder& net, Value x) { return net.relu(norm(net, x)); }},
      {"add", [=](Builder& net, Value x) { return joined(net, x); }},
      {"add_relu", [=](Builder& net, Value x) { return net.relu(joined(net, x)); }},
      {"two_consumers", [=](Builder& net, Value x) { return consumed(net, norm(net, x)); }},
      {"relu_two_consumers", [=](Builder& net, Value x) { return consumed(net, net.relu(norm(net, x))); }},
      {"add_two_consumers", [=](Builder& net, Value x) { return consumed(net, joined(net, x)); }},
      {"add_relu_two_consumers", [=](Builder& net, Value x) { return consumed(net, net.relu(joined(net, x))); }},
      {"add_relu_three_consumers",
       [=](Builder& net, Value x) { return consumed(net, net.relu(joined(net, x)), true); }},
      {"frozen_relu",
       [=](Builder& net, Value x) {
         const Value y = net.tanh(x), normalized = net.freeze().batch_norm(y);
         return net.freeze(false).relu(normalized);
       }},
      {"frozen_add_relu",
       [=](Builder& net, Value x) {
         const Value y = net.tanh(x), normalized = net.freeze().batch_norm(y);
         return net.freeze(false).relu(net.add({x, normalized}));
       }},
      {"shared_relu",
       [=](Builder& net, Value x) {
         const Value first = norm(net, x), second = net.tanh(net.relu(first));
         return net.relu(net.sharing(first).batch_norm(second));
       }},
  };
  std::vector<NetworkCase> cases;
  for (const auto& [name, body] : bodies)
    for (const std::int64_t channels : {1, 3, 7, 20, 32})
      cases.push_back({fmt::format("{}_{}", name, channels), 3, {1, channels, 6, 5}, body});
  cases.push_back({"large_add_relu_two_consumers", 3, {1, 24, 41, 43}, bodies[6].second});
  cases.push_back({"large_relu", 3, {1, 19, 41, 43}, bodies[0].second});
  return cases;
}

// Large enough to be cut into parts for several threads.
inline std::vector<NetworkCase> large_cases() {
  const Shape sample{1, 19, 41, 43};
  return {
      {"large_activations", 3, sample, [](Builder& net, Value x) { return net.sigmoid(net.tanh(net.relu(x))); }},
      {"large_batch_norm", 3, sample, [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); }},
      {"large_lrn", 3, sample, [](Builder& net, Value x) { return net.lrn(x, {.alpha = 0.5}); }},
      {"large_dropout", 3, sample, [](Builder& net, Value x) { return net.dropout(x, {.rate = 0.2}); }},
      {"large_max_pool", 3, sample,
       [](Builder& net, Value x) { return net.max_pool(x, {.window = Window::square(3, 2, 1)}); }},
      {"large_average_pool", 3, sample,
       [](Builder& net, Value x) { return net.average_pool(x, {.window = Window::square(3, 2, 1)}); }},
      {"large_global_pool", 3, sample, [](Builder& net, Value x) { return net.global_average_pool(x); }},
      {"large_concat", 3, sample,
       [](Builder& net, Value x) {
         return net.concat({net.tanh(x), net.relu(x)});
       }},
      {"large_add", 3, sample,
       [](Builder& net, Value x) {
         return net.add({net.tanh(x), net.relu(x), x});
       }},
      {"large_multiply", 3, sample, [](Builder& net, Value x) { return net.multiply(net.tanh(x), net.relu(x)); }},
  };
}

// Large enough to be written past the caches.
inline NetworkCase huge_case() {
  return {"huge", 3, {1, 2, 600, 600}, [](Builder& net, Value x) { return net.batch_norm(net.relu(x)); }};
}

inline std::vector<NetworkCase> all_cases() {
  std::vector<NetworkCase> all;
  for (const auto& group : {convolution_cases(), pool_cases(), pointwise_cases(), normalization_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace tide::test
