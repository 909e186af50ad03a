// One graph on its way to a network, and one node of it as the functions of words (words/) see it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foreign/operations.h"

namespace tide {

struct Lowering {
  Lowering(const ForeignGraph& graph, const ImportOptions& options);

  const ForeignGraph& graph;
  const ImportOptions& options;
  UseCounts uses;  // outputs of the graph included
  Operations operations;
  std::unordered_map<std::string, ForeignValue> values;
  std::optional<std::int64_t> batch;     // where the graph has a fixed one
  std::vector<std::size_t> losses = {};  // operations
  std::vector<std::string> notes = {};
  bool trains = false;     // batch norms that say so normalize with the batch, the others do not
  std::int64_t limit = 0;  // elements of an array that is made on the way
  std::int64_t left = 0;   // and of all of them, copies of others included
  int evaluating_norms = 0, restored_dropouts = 0;
  std::vector<std::string> folded_norms = {};  // weights that have batch norms in them, by their names

  void note(std::string text);
  // Throws an Error where what nodes compute comes to more than the graph could need.
  void count(const ForeignNode& node, const Known& result);
  void count(const std::string& where, std::int64_t elements);
};

class NodeContext {
 public:
  NodeContext(Lowering& lowering, const ForeignNode& node) : lowering_(lowering), node_(node) {}

  [[nodiscard]] Lowering& lowering() const { return lowering_; }
  [[nodiscard]] Operations& operations() const { return lowering_.operations; }
  [[nodiscard]] const ForeignNode& node() const { return node_; }
  [[nodiscard]] std::int64_t opset() const { return lowering_.graph.opset; }

  // An Error that begins with the node.
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(fmt::format(format, std::forward<Args>(args)...));
  }

  // Attributes, or what they are where they are left out. Throw where they have another type.
  [[nodiscard]] bool has(const char* name) const { return node_.attributes.contains(name); }
  [[nodiscard]] std::int64_t integer(const char* name, std::int64_t otherwise) const;
  [[nodiscard]] double number(const char* name, double otherwise) const;
  [[nodiscard]] std::string text(const char* name, const std::string& otherwise) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const char* name) const;
  [[nodiscard]] const ForeignAttribute* attribute(const char* name) const;

  // Inputs. `value` throws where there is no layer for what they stand for.
  [[nodiscard]] std::size_t inputs() const { return node_.inputs.size(); }
  [[nodiscard]] bool has_input(std::size_t i) const { return i < inputs() && !node_.inputs[i].empty(); }
  [[nodiscard]] const ForeignValue& value(std::size_t i) const;
  [[nodiscard]] const Known* known(std::size_t i) const { return std::get_if<Known>(&value(i)); }
  [[nodiscard]] Made made(std::size_t i) const;  // throws where it is none
  [[nodiscard]] const Shape& shape(std::size_t i) const { return operations().shape(made(i)); }
  // A constant array of floats; throws where it is none.
  [[nodiscard]] Array array(std::size_t i, const char* what) const;
  // The attribute of older operator sets, or the input of newer ones; nothing where neither is there.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> list(const char* name, std::size_t input) const;
  [[nodiscard]] std::optional<double> scalar(std::size_t i) const;
  // 0 to rank - 1, counted from behind where it is negative.
  [[nodiscard]] std::int64_t axis(std::int64_t given, std::size_t rank) const;

  void give(ForeignValue result, std::size_t output = 0) const;
  void give_layer(LayerKind kind, LayerOptions options = NoOptions{}) const {
    give(operations().layer(kind, {made(0)}, std::move(options), &node_));
  }

 private:
  [[noreturn]] void fail(std::string text) const;  // in one line, whatever the graph has in its texts

  Lowering& lowering_;
  const ForeignNode& node_;
};

struct Word {
  std::string_view domain, op;
  void (*lower)(const NodeContext& node);
};

// By family, in words/.
[[nodiscard]] std::span<const Word> function_words();
[[nodiscard]] std::span<const Word> arithmetic_words();
[[nodiscard]] std::span<const Word> product_words();
[[nodiscard]] std::span<const Word> pool_words();
[[nodiscard]] std::span<const Word> normalization_words();
[[nodiscard]] std::span<const Word> rearrangement_words();
[[nodiscard]] std::span<const Word> place_words();  // resize, pad, slices
[[nodiscard]] std::span<const Word> random_words();
[[nodiscard]] std::span<const Word> number_words();  // of shapes and constants
[[nodiscard]] std::span<const Word> loss_words();

// Puts the loss that the options ask for behind the graph's first output.
void add_loss(Lowering& lowering, Made output);
// From the operations that the outputs need to a network (emit.cpp).
[[nodiscard]] ImportedNetwork emit(Lowering& lowering, const std::vector<Made>& outputs);

}  // namespace tide
