// Losses, of the domain "tidepool" or as the options ask for one.
#include <array>

#include "foreign/lowering.h"
#include "network/kind.h"

namespace tide {
namespace {

std::int64_t next_label(const Lowering& lowering) {
  std::int64_t next = 0;
  for (const std::size_t loss : lowering.losses) {
    const Operation& operation = lowering.operations.all()[loss];
    Layer layer;
    layer.kind = operation.kind;
    layer.options = operation.options;
    layer.outputs = operation.outputs;
    const LossLabels labels = description_of(layer.kind).loss(layer);
    next = std::max(next, checked_add(labels.offset, labels.count));
  }
  return next;
}

void add_loss_layer(Lowering& lowering, LayerKind kind, LayerOptions options, Made x, const ForeignNode* node,
                    std::string target) {
  // A softmax of the loss is its own.
  const Operation& last = lowering.operations.at(x);
  const bool softmax =
      last.piece == Piece::log_softmax || (last.piece == Piece::none && last.kind == LayerKind::softmax);
  const std::int64_t axis = last.piece == Piece::log_softmax ? last.axis
                            : softmax                        ? std::get<SoftmaxAxisOptions>(last.options).axis
                                                             : 0;
  if (kind == LayerKind::softmax_cross_entropy && softmax && axis == 1) {
    lowering.note(fmt::format("'{}' is left out: the loss has a softmax of its own",
                              last.node != nullptr ? last.node->name : "softmax"));
    x = last.inputs[0];
  }
  Operation operation;
  operation.kind = kind;
  operation.inputs = {x};
  operation.options = std::move(options);
  operation.node = node;
  operation.target = std::move(target);
  const Made made = lowering.operations.append(std::move(operation));
  lowering.losses.push_back(made.operation);
}

std::string target_of(const NodeContext& node) {
  if (!node.has_input(1)) node.refuse("it has no targets; give them as its second input");
  for (const ForeignInput& input : node.lowering().graph.inputs)
    if (input.name == node.node().inputs[1]) return input.name;
  node.refuse("its targets '{}' are computed; they must be an input of the graph", node.node().inputs[1]);
}

void lower_cross_entropy(const NodeContext& node) {
  SoftmaxOptions options;
  options.label_smoothing = node.number("label_smoothing", 0);
  options.weight = node.number("weight", 1);
  options.label_offset = next_label(node.lowering());
  if (node.has("ignore_index")) {
    const std::int64_t ignored = node.integer("ignore_index", -100);
    if (ignored >= 0 && ignored < node.shape(0).channels())
      node.refuse("it ignores label {}, which is one of its {} classes; give those positions a label outside of them",
                  ignored, node.shape(0).channels());
    options.counted = true;
  }
  if (node.has_input(2)) node.refuse("it weighs classes, for which there is no layer");
  add_loss_layer(node.lowering(), LayerKind::softmax_cross_entropy, options, node.made(0), &node.node(),
                 target_of(node));
}

template <LayerKind kind>
void lower_element_loss(const NodeContext& node) {
  ElementLossOptions options;
  options.weight = node.number("weight", 1);
  options.label_offset = next_label(node.lowering());
  add_loss_layer(node.lowering(), kind, options, node.made(0), &node.node(), target_of(node));
}

constexpr std::array kLossWords{
    Word{"tidepool", "CrossEntropy", lower_cross_entropy},
    Word{"tidepool", "BinaryCrossEntropyWithLogits", lower_element_loss<LayerKind::sigmoid_cross_entropy>},
    Word{"tidepool", "MeanSquaredError", lower_element_loss<LayerKind::mean_squared_error>},
};

}  // namespace

std::span<const Word> loss_words() { return kLossWords; }

void add_loss(Lowering& lowering, Made output) {
  const std::string& loss = lowering.options.loss;
  if (loss == "cross-entropy")
    return add_loss_layer(lowering, LayerKind::softmax_cross_entropy, SoftmaxOptions{}, output, nullptr, "");
  if (loss == "binary-cross-entropy")
    return add_loss_layer(lowering, LayerKind::sigmoid_cross_entropy, ElementLossOptions{}, output, nullptr, "");
  if (loss == "mean-squared-error")
    return add_loss_layer(lowering, LayerKind::mean_squared_error, ElementLossOptions{}, output, nullptr, "");
  throw Error("loss '{}' is not known; give cross-entropy, binary-cross-entropy or mean-squared-error", loss);
}

}  // namespace tide
