// Functions of single elements.
#include <array>
#include <limits>

#include "foreign/lowering.h"
#include "foreign/patterns.h"

namespace tide {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();

template <LayerKind kind>
void lower_kind(const NodeContext& node) {
  node.give_layer(kind);
}

void give_function(const NodeContext& node, ActivationFunction function, double alpha = 0, double beta = 0) {
  node.give(node.operations().activation(node.made(0), function, alpha, beta, &node.node()));
}

template <ActivationFunction function>
void lower_usual(const NodeContext& node) {
  const ActivationOptions usual = ActivationOptions::of(function);
  give_function(node, function, usual.alpha, usual.beta);
}

double bound(const NodeContext& node, const char* name, std::size_t input, double otherwise) {
  if (node.has(name)) return node.number(name, otherwise);
  if (!node.has_input(input)) return otherwise;
  const std::optional<double> value = node.scalar(input);
  if (!value) node.refuse("its bound '{}' is not one constant number", name);
  return std::clamp(*value, -kLargest, kLargest);
}

void give_clip(const NodeContext& node, Made x, double low, double high) {
  if (low == 0 && high >= kLargest)
    node.give(node.operations().layer(LayerKind::relu, {x}, NoOptions{}, &node.node()));
  else
    node.give(node.operations().activation(x, ActivationFunction::clip, low, high, &node.node()));
}

void lower_clip(const NodeContext& node) {
  give_clip(node, node.made(0), bound(node, "min", 1, -kLargest), bound(node, "max", 2, kLargest));
}

// Of a value and constants.
template <bool largest>
void lower_extreme(const NodeContext& node) {
  std::optional<Made> x;
  double limit = largest ? -kLargest : kLargest;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    if (const std::optional<double> constant = node.scalar(i)) {
      limit = largest ? std::max(limit, *constant) : std::min(limit, *constant);
      continue;
    }
    if (x)
      node.refuse("it takes the {} of two computed values, for which there is no layer",
                  largest ? "larger" : "smaller");
    x = node.made(i);
  }
  if (!x) node.refuse("none of its inputs is computed from the batch");
  give_clip(node, *x, largest ? limit : -kLargest, largest ? kLargest : limit);
}

void lower_leaky_relu(const NodeContext& node) {
  give_function(node, ActivationFunction::leaky_relu, node.number("alpha", 0.01));
}

void lower_prelu(const NodeContext& node) {
  const std::optional<double> slope = node.scalar(1);
  const Known* const array = node.known(1);
  if (!slope || (array != nullptr && array->array && !array->array->name.empty()))
    node.refuse("its slope is trained, for which there is no layer; use LeakyRelu");
  give_function(node, ActivationFunction::leaky_relu, *slope);
}

void lower_elu(const NodeContext& node) { give_function(node, ActivationFunction::elu, node.number("alpha", 1)); }

void lower_selu(const NodeContext& node) {
  const Made elu = node.operations().activation(node.made(0), ActivationFunction::elu,
                                                node.number("alpha", 1.67326319217681884765625), 0, &node.node());
  node.give(node.operations().affine(elu, node.number("gamma", 1.05070102214813232421875), 0, &node.node()));
}

// alpha * f(x / alpha)
void give_stretched(const NodeContext& node, ActivationFunction function, double alpha, double outer) {
  if (alpha == 0) node.refuse("its alpha is 0");
  Operations& operations = node.operations();
  const ActivationOptions usual = ActivationOptions::of(function);
  const Made inner = operations.affine(node.made(0), 1 / alpha, 0, &node.node());
  const Made result = operations.activation(inner, function, usual.alpha, usual.beta, &node.node());
  node.give(operations.affine(result, outer, 0, &node.node()));
}

void lower_celu(const NodeContext& node) {
  const double alpha = node.number("alpha", 1);
  give_stretched(node, ActivationFunction::elu, alpha, alpha);
}

// x * sigmoid(alpha * x)
void lower_swish(const NodeContext& node) {
  const double alpha = node.number("alpha", 1);
  if (alpha == 0) node.refuse("its alpha is 0");
  give_stretched(node, ActivationFunction::silu, 1 / alpha, 1 / alpha);
}

void lower_hard_sigmoid(const NodeContext& node) {
  give_function(node, ActivationFunction::hard_sigmoid, node.number("alpha", 0.2), node.number("beta", 0.5));
}

void lower_gelu(const NodeContext& node) {
  const std::string way = node.text("approximate", "none");
  if (way != "none" && way != "tanh") node.refuse("its attribute 'approximate' is '{}'; give none or tanh", way);
  give_function(node, way == "tanh" ? ActivationFunction::gelu_tanh : ActivationFunction::gelu);
}

void lower_negative(const NodeContext& node) { node.give(node.operations().affine(node.made(0), -1, 0, &node.node())); }

void give_piece(const NodeContext& node, Piece piece, std::int64_t axis = 0) {
  Operation operation;
  operation.piece = piece;
  operation.inputs = {node.made(0)};
  operation.node = &node.node();
  operation.axis = axis;
  node.give(node.operations().add(std::move(operation)));
}

void lower_erf(const NodeContext& node) { give_piece(node, Piece::erf); }

void lower_power(const NodeContext& node) {
  const std::optional<double> exponent = node.scalar(1);
  if (!exponent) node.refuse("its exponent is not one constant number");
  if (*exponent == 1) return node.give(node.made(0));
  if (*exponent == 2) return give_function(node, ActivationFunction::square);
  if (*exponent == 0.5) return give_function(node, ActivationFunction::sqrt);
  if (*exponent == 3) return give_piece(node, Piece::cube);
  node.refuse("its exponent is {}; there are layers for 1, 2 and 1/2", *exponent);
}

// softplus(b * x) / b, or x where b * x is above a limit.
void lower_where(const NodeContext& node) {
  const Operations& operations = node.operations();
  const auto* const condition = std::get_if<Made>(&node.value(0));
  const Operation* const above = condition != nullptr ? operations.as(*condition, Piece::above) : nullptr;
  if (above == nullptr) node.refuse("it chooses between computed values, for which there is no layer");
  const Made x = node.made(1);
  const auto factored = [&](Made value) {
    const ActivationOptions* const affine = operations.activation(value, ActivationFunction::affine);
    if (affine == nullptr || affine->beta != 0) return std::pair(value, 1.0);
    return std::pair(operations.at(value).inputs[0], affine->alpha);
  };
  const auto [plus, outer] = factored(node.made(2));
  const ActivationOptions* const softplus = operations.activation(plus, ActivationFunction::softplus);
  const auto [compared, factor] = factored(above->inputs[0]);
  if (softplus == nullptr || softplus->alpha != 1 || compared != x ||
      operations.at(plus).inputs[0] != above->inputs[0] || !is_near(outer * factor, 1))
    node.refuse("it chooses between computed values; there is a layer for that as a part of softplus only");
  node.give(node.operations().activation(x, ActivationFunction::softplus, factor, above->limit, &node.node()));
}

void lower_softmax(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const std::int64_t axis = node.axis(node.integer("axis", node.opset() >= 13 ? -1 : 1), shape.rank());
  if (axis == 0) node.refuse("it goes over the batch, for which there is no layer");
  if (node.opset() < 13 && (axis != 1 || shape.positions() != 1))
    node.refuse(
        "before operator set 13 it goes over all axes from {} on, for which there is no layer; export with a newer one",
        axis);
  if (node.node().op == "LogSoftmax") return give_piece(node, Piece::log_softmax, axis);
  node.give_layer(LayerKind::softmax, SoftmaxAxisOptions{axis});
}

void lower_norm(const NodeContext& node) {
  const auto axes = node.list("axes", 1);
  if (!axes || axes->size() != 1) node.refuse("it goes over several axes; there is a layer for one");
  const std::int64_t axis = node.axis(axes->front(), node.shape(0).rank());
  if (axis == 0) node.refuse("it goes over the batch, for which there is no layer");
  if (node.integer("keepdims", 1) == 0)
    node.refuse("it leaves its axis out; a norm can only divide what it is the norm of");
  const Shape shape = node.shape(0).with_extent(static_cast<std::size_t>(axis), 1);
  Operation operation;
  operation.piece = Piece::norm;
  operation.inputs = {node.made(0)};
  operation.node = &node.node();
  operation.axis = axis;
  operation.outputs = {shape};
  node.give(node.operations().append(std::move(operation)));
}

void lower_lp_normalization(const NodeContext& node) {
  if (node.integer("p", 2) != 2) node.refuse("its p is {}; there is a layer for 2", node.integer("p", 2));
  const std::int64_t axis = node.axis(node.integer("axis", -1), node.shape(0).rank());
  node.give_layer(LayerKind::l2_normalize, L2NormalizeOptions{.axis = axis});
}

constexpr std::array kFunctionWords{
    Word{"", "Relu", lower_kind<LayerKind::relu>},
    Word{"", "Sigmoid", lower_kind<LayerKind::sigmoid>},
    Word{"", "Tanh", lower_kind<LayerKind::tanh>},
    Word{"", "Clip", lower_clip},
    Word{"", "Max", lower_extreme<true>},
    Word{"", "Min", lower_extreme<false>},
    Word{"", "LeakyRelu", lower_leaky_relu},
    Word{"", "PRelu", lower_prelu},
    Word{"", "Elu", lower_elu},
    Word{"", "Selu", lower_selu},
    Word{"", "Celu", lower_celu},
    Word{"", "Swish", lower_swish},
    Word{"tidepool", "Silu", lower_usual<ActivationFunction::silu>},
    Word{"", "HardSwish", lower_usual<ActivationFunction::hard_swish>},
    Word{"", "Mish", lower_usual<ActivationFunction::mish>},
    Word{"", "Softplus", lower_usual<ActivationFunction::softplus>},
    Word{"", "Exp", lower_usual<ActivationFunction::exp>},
    Word{"", "Sqrt", lower_usual<ActivationFunction::sqrt>},
    Word{"", "Abs", lower_usual<ActivationFunction::abs>},
    Word{"", "HardSigmoid", lower_hard_sigmoid},
    Word{"", "Gelu", lower_gelu},
    Word{"", "Neg", lower_negative},
    Word{"", "Erf", lower_erf},
    Word{"", "Pow", lower_power},
    Word{"", "Where", lower_where},
    Word{"", "Softmax", lower_softmax},
    Word{"", "LogSoftmax", lower_softmax},
    Word{"", "ReduceL2", lower_norm},
    Word{"", "LpNormalization", lower_lp_normalization},
};

}  // namespace

std::span<const Word> function_words() { return kFunctionWords; }

}  // namespace tide
