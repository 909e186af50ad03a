// Random small networks of every layer kind: chains, fans, joins, nested ones, shared
// weights, frozen layers. The same seed gives the same network everywhere.
#pragma once

#include <algorithm>
#include <map>
#include <random>

#include "network/builder.h"

namespace tide::testing_support {

class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint32_t seed) : random_(seed), builder_("random" + std::to_string(seed)) {}

  Network make(int layers) {
    const Shape sample{1, pick(1, 4), pick(4, 9), pick(4, 9)};
    produce(builder_.input(sample));
    for (int i = 0; i < layers; ++i) add_layer();
    finish();
    return std::move(builder_).build();
  }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(high - low + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  void produce(Value value) {
    uses_[value] = 0;
    values_.push_back(value);
  }
  Value consume(Value value) {
    ++uses_[value];
    return value;
  }
  // Mostly the newest value, so that networks get deep; sometimes an old one: a fan.
  Value any() {
    const auto newest = static_cast<std::int64_t>(values_.size()) - 1;
    return values_[static_cast<std::size_t>(chance(70) ? newest : pick(0, newest))];
  }
  const Shape& shape(Value value) const { return builder_.shape(value); }

  void add_layer() {
    const Value x = any();
    const Shape s = shape(x);
    builder_.freeze(chance(10));
    switch (pick(0, 13)) {
      case 0:
      case 1: return convolution(x, s);
      case 2: return produce(builder_.relu(consume(x)));
      case 3: return produce(chance(50) ? builder_.sigmoid(consume(x)) : builder_.tanh(consume(x)));
      case 4: return produce(builder_.batch_norm(consume(x)));
      case 5: return produce(builder_.dropout(consume(x), {.rate = 0.3}));
      case 6: return pool(x, s);
      case 7:
      case 8: return join(x, s);
      case 9: return concat(x, s);
      case 10: return split(x, s);
      case 11: return produce(builder_.lrn(consume(x), {.size = 3}));
      case 12: return fully_connected(x, s);
      default: return transposed(x, s);
    }
  }

  void convolution(Value x, const Shape& s) {
    ConvolutionOptions options{.channels = pick(1, 6), .window = {}, .groups = 1, .bias = chance(50)};
    if (chance(30)) {
      options.groups = s.channels();
      options.channels = s.channels() * pick(1, 2);
    }
    Window& window = options.window;
    window.kernel_height = pick(1, 3);
    window.kernel_width = pick(1, 3);
    window.pad_top = window.pad_bottom = window.kernel_height / 2;
    window.pad_left = window.pad_right = window.kernel_width / 2;
    window.stride_height = window.stride_width = chance(25) ? 2 : 1;
    // The same convolution of another value of the same shape: shared weights.
    for (const Convolved& earlier : convolved_)
      if (earlier.input == s && chance(30)) {
        options = earlier.options;
        builder_.sharing(earlier.output);
        break;
      }
    const Value y = builder_.convolution(consume(x), options);
    convolved_.push_back({s, options, y});
    produce(y);
  }

  void transposed(Value x, const Shape& s) {
    if (s.height() > 8 || s.width() > 8) return produce(builder_.relu(consume(x)));
    produce(builder_.transposed_convolution(
        consume(x), {.channels = pick(1, 4), .window = Window::square(2, 2), .groups = 1, .bias = chance(50)}));
  }

  void pool(Value x, const Shape& s) {
    if (s.height() < 3 || s.width() < 3) return produce(builder_.global_average_pool(consume(x)));
    const PoolOptions options{
        .window = Window::square(3, pick(1, 2), 1), .round_up = chance(30), .count_padding = chance(50)};
    produce(chance(60) ? builder_.max_pool(consume(x), options) : builder_.average_pool(consume(x), options));
  }

  void join(Value x, const Shape& s) {
    std::vector<Value> same{x};
    for (const Value& other : values_)
      if (other != x && shape(other) == s && same.size() < 3 && chance(60)) same.push_back(other);
    if (same.size() == 1) same.push_back(x);  // x + x and x * x are networks too
    for (const Value& value : same) consume(value);
    if (chance(35)) {
      if (same.size() == 3) --uses_[same[2]];
      return produce(builder_.multiply(same[0], same[1]));
    }
    produce(builder_.add(same));
  }

  void concat(Value x, const Shape& s) {
    std::vector<Value> inputs{x};
    for (const Value& other : values_)
      if (other != x && shape(other).height() == s.height() && shape(other).width() == s.width() && inputs.size() < 3 &&
          chance(50))
        inputs.push_back(other);
    if (inputs.size() == 1) return produce(builder_.relu(consume(x)));
    for (const Value& value : inputs) consume(value);
    produce(builder_.concat(inputs));
  }

  void split(Value x, const Shape& s) {
    if (s.channels() < 2) return produce(builder_.tanh(consume(x)));
    const std::int64_t first = pick(1, s.channels() - 1);
    for (const Value& value : builder_.split(consume(x), {first, s.channels() - first})) produce(value);
  }

  void fully_connected(Value x, const Shape&) {
    produce(builder_.fully_connected(consume(x), {.channels = pick(1, 8), .bias = chance(70)}));
  }

  // Brings everything that nobody uses yet into one loss, or two.
  void finish() {
    builder_.freeze(false);
    std::vector<Value> loose;
    for (const Value& value : values_)
      if (uses_[value] == 0) loose.push_back(value);
    std::vector<Value> pooled;
    for (const Value& value : loose) {
      const Shape& s = shape(value);
      pooled.push_back(s.height() == 1 && s.width() == 1 ? value : builder_.global_average_pool(value));
    }
    const Value all = pooled.size() == 1 ? pooled[0] : builder_.concat(pooled);
    const Value logits = builder_.fully_connected(all, {.channels = 5});
    builder_.softmax_cross_entropy(logits, {.label_smoothing = chance(30) ? 0.1 : 0.0});
    if (chance(20))
      builder_.softmax_cross_entropy(builder_.fully_connected(all, {.channels = 5}),
                                     {.weight = 0.5, .label_offset = 1});
  }

  struct Convolved {
    Shape input;
    ConvolutionOptions options;
    Value output;
  };
  std::mt19937 random_;
  Builder builder_;
  std::vector<Value> values_;
  std::map<Value, int> uses_;
  std::vector<Convolved> convolved_;
};

inline NetworkPtr random_network(std::uint32_t seed) {
  std::mt19937 random(seed ^ 0x9e3779b9U);
  return std::make_shared<Network>(RandomNetwork(seed).make(3 + static_cast<int>(random() % 25)));
}

}  // namespace tide::testing_support
