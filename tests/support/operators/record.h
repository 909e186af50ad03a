// What the operator table has of a kind of layer. Each case is a small network that starts with a 1x1
// convolution, so that the gradient of everything behind it reaches a parameter, and ends in a loss.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "support/growing_network.h"

namespace tide::test {

struct NetworkCase {
  std::string name;
  std::int64_t batch = 2;
  Shape sample{1, 3, 7, 6};
  std::function<Value(Builder&, Value)> body;
  // Of the distance to the reference, relative to its length. A result stored as bf16 is off by half a unit of
  // eight bits, and so are the weights of products.
  double tolerance = 1e-5, bf16_tolerance = 1e-2;

  [[nodiscard]] NetworkPtr network(const SoftmaxOptions& loss = {}) const {
    Builder builder(name);
    // Something with parameters before it, so that its input's gradient is wanted.
    Value x = builder.input(sample);
    x = sample.rank() == 4 ? builder.convolution(x, {.channels = sample.channels()}) : builder.batch_norm(x);
    builder.softmax_cross_entropy(body(builder, x), loss);
    return std::make_shared<const Network>(std::move(builder).build());
  }
  friend std::ostream& operator<<(std::ostream& out, const NetworkCase& c) { return out << c.name; }
};

struct OperatorRecord {
  LayerKind kind;
  // Odd shapes, and every option at a value that is not its default; the first is the plainest.
  std::vector<NetworkCase> cases;
  std::vector<NetworkCase> large = {};  // enough to be cut into parts for several threads
  // A random layer of this kind (or of its family) behind a value; null where another record's makes them, or
  // where there is nothing to make.
  testing_support::Grow grow = nullptr;
  bool passes_nan = false;  // a network that has diverged must say so
};

inline Window window(std::int64_t height, std::int64_t width, std::int64_t stride_height, std::int64_t stride_width,
                     std::int64_t top, std::int64_t left, std::int64_t bottom, std::int64_t right,
                     std::int64_t dilation_height = 1, std::int64_t dilation_width = 1) {
  return {height, width, stride_height, stride_width, top, left, bottom, right, dilation_height, dilation_width};
}

inline const Shape kLargeSample{1, 19, 41, 43};

using testing_support::GrowingNetwork;

}  // namespace tide::test
