// The layers that a foreign graph becomes, before it is known which of them its result needs. What is added is made
// simpler at once: factors are multiplied, and what exporters take to pieces is put together (patterns.h).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "foreign/lower.h"
#include "foreign/value.h"
#include "network/layer.h"

namespace tide {

// Pieces that are no layer by themselves.
enum class Piece : std::uint8_t { none, erf, cube, norm, spread, log_softmax, above };

struct ParameterArray {
  ParameterRole role = ParameterRole::weight;
  Array array;
};

struct Operation {
  LayerKind kind = LayerKind::input;
  Piece piece = Piece::none;  // then there is no kind
  std::vector<Made> inputs;
  LayerOptions options;
  std::vector<Shape> outputs = {};  // samples, batch 1
  std::vector<ParameterArray> parameters = {};
  const ForeignNode* node = nullptr;  // whose name it takes, and for messages
  const ForeignNode* last = nullptr;  // whose output is its result, where that is another one
  std::int64_t axis = 0;              // of a norm
  double limit = 0;                   // that values are above
  std::string target = {};            // of a loss: the graph's input
};

// "Conv 'conv1' (model.py:31)": begins messages.
[[nodiscard]] std::string describe(const ForeignNode& node);

// How often each value of a graph is read.
using UseCounts = std::unordered_map<std::string, int>;

class Operations {
 public:
  // REQUIRES: `uses` lives as long.
  explicit Operations(const UseCounts& uses) : uses_(&uses) {}

  // Infers the shapes and simplifies. Throws an Error that names the node where the layer is not possible.
  Made add(Operation operation);
  // As it is.
  Made append(Operation operation);

  [[nodiscard]] const Operation& at(const Made& value) const { return all_[value.operation]; }
  [[nodiscard]] const Shape& shape(const Made& value) const { return all_[value.operation].outputs[value.output]; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const std::deque<Operation>& all() const { return all_; }
  // The operation if it is of this kind, or null.
  [[nodiscard]] const Operation* as(const Made& value, LayerKind kind) const;
  [[nodiscard]] const Operation* as(const Made& value, Piece piece) const;
  [[nodiscard]] const ActivationOptions* activation(const Made& value, ActivationFunction function) const;

  // Whether `reader` alone reads it in the graph, so that what made it can be changed. May be false where it is true.
  [[nodiscard]] bool is_read_once(const Made& value, const ForeignNode* reader) const;

  // Short forms.
  Made activation(Made x, ActivationFunction function, double alpha, double beta, const ForeignNode* node);
  Made affine(Made x, double factor, double term, const ForeignNode* node) {
    return activation(x, ActivationFunction::affine, factor, term, node);
  }
  Made reshape(Made x, const Shape& sample, const ForeignNode* node);
  Made layer(LayerKind kind, std::vector<Made> inputs, LayerOptions options, const ForeignNode* node);

 private:
  void infer(Operation& operation) const;

  const UseCounts* uses_;
  std::deque<Operation> all_;  // references stay good
};

}  // namespace tide
