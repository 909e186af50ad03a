// A network that grows by one random layer after the other: what the records of operators.h make
// their random layers with.
#pragma once

#include <map>
#include <random>

#include "network/builder.h"

namespace tide::testing_support {

class GrowingNetwork {
 public:
  explicit GrowingNetwork(std::uint32_t seed) : random_(seed), builder_("random" + std::to_string(seed)) {}

  [[nodiscard]] Builder& builder() { return builder_; }
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(high - low + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  // Every value is announced when it is made, and when a layer takes it.
  void produce(Value value) {
    uses_[value] = 0;
    values_.push_back(value);
  }
  Value consume(Value value) {
    ++uses_[value];
    return value;
  }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const Shape& shape(Value value) const { return builder_.shape(value); }
  [[nodiscard]] bool used(Value value) const { return uses_.at(value) > 0; }
  // Mostly the newest value, so that networks get deep; sometimes an old one: a fan.
  Value any() {
    const auto newest = static_cast<std::int64_t>(values_.size()) - 1;
    return values_[static_cast<std::size_t>(chance(70) ? newest : pick(0, newest))];
  }

  // Sometimes an earlier convolution of another value of the same shape: shared weights.
  void convolution(Value x, ConvolutionOptions options) {
    const Shape s = shape(x);
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

 private:
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

// Adds a layer behind a value.
using Grow = void (*)(GrowingNetwork& net, Value x);

}  // namespace tide::testing_support
