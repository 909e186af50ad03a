// Convolutions and matrix products.
#include <array>

#include "foreign/lowering.h"
#include "foreign/windows.h"

namespace tide {
namespace {

void bind_bias(const NodeContext& node, std::size_t input, std::int64_t channels, Operation& operation,
               bool& has_bias) {
  has_bias = false;
  if (!node.has_input(input)) return;
  // Exporters write a bias of zeros where there is none.
  if (const Known* const known = node.known(input); known != nullptr && known->fill == 0.0) return;
  Array bias = node.array(input, "bias");
  if (element_count(bias.extents) != channels)
    node.refuse("its bias has extents {}; it must be one number for each of {} channels", fmt::join(bias.extents, "x"),
                channels);
  has_bias = true;
  operation.parameters.push_back({ParameterRole::bias, std::move(bias)});
}

// Exporters for evaluation multiply a batch norm into the convolution before it. What they call the result tells: a
// bias that is named after the weight, arrays without names of the model's own, or the value that the batch norm made.
bool has_folded_norm(const NodeContext& node) {
  if (!node.has_input(2)) return false;
  const std::string &weight = node.node().inputs[1], &bias = node.node().inputs[2];
  if (bias == weight + "_bias") return true;
  if (weight.starts_with("onnx::Conv") && bias.starts_with("onnx::Conv")) return true;
  const std::vector<std::string>& outputs = node.node().outputs;
  return !outputs.empty() && (outputs[0] == "getitem" || outputs[0].starts_with("getitem_"));
}

// The input as an image: of a line of values, one with the height 1.
Made image_of(const NodeContext& node, Made x) {
  const Shape& shape = node.operations().shape(x);
  if (shape.rank() == 3) return node.operations().reshape(x, {1, shape.extent(1), 1, shape.extent(2)}, &node.node());
  if (shape.rank() != 4)
    node.refuse("it works on {}; there are layers for channels x height x width and channels x length",
                sample_text(shape));
  return x;
}

void give_image(const NodeContext& node, Made image, bool line) {
  if (!line) return node.give(image);
  const Shape& shape = node.operations().shape(image);
  node.give(node.operations().reshape(image, {1, shape.channels(), shape.width()}, &node.node()));
}

template <bool transposed>
void lower_convolution(const NodeContext& node) {
  const Made x = image_of(node, node.made(0));
  const bool line = node.shape(0).rank() == 3;
  Array weight = node.array(1, "weight");
  if (weight.extents.size() != (line ? 3U : 4U))
    node.refuse("its weight has extents {}, which do not fit an input of {}", fmt::join(weight.extents, "x"),
                sample_text(node.shape(0)));
  if (line) weight = reshaped(weight, {weight.extents[0], weight.extents[1], 1, weight.extents[2]});
  const Shape& shape = node.operations().shape(x);
  ConvolutionOptions options;
  options.groups = node.integer("group", 1);
  if (options.groups < 1) node.refuse("it has {} groups", options.groups);
  options.channels = transposed ? checked_multiply(weight.extents[1], options.groups) : weight.extents[0];
  const std::int64_t inputs = transposed ? weight.extents[0] : checked_multiply(weight.extents[1], options.groups);
  if (inputs != shape.channels())
    node.refuse("its weight is for {} channels but its input has {}", inputs, shape.channels());
  options.window = read_window(node, {weight.extents[2], weight.extents[3]}, shape, line, transposed);
  Operation operation;
  operation.kind = transposed ? LayerKind::transposed_convolution : LayerKind::convolution;
  operation.inputs = {x};
  operation.node = &node.node();
  operation.parameters = {{ParameterRole::weight, std::move(weight)}};
  bind_bias(node, 2, options.channels, operation, options.bias);
  if (has_folded_norm(node)) node.lowering().folded_norms.push_back(node.node().inputs[1]);
  operation.options = options;
  give_image(node, node.operations().add(std::move(operation)), line);
}

// What the product takes: a value that was only flattened is taken as it was, since weights are in row-major order.
Made flattened_source(const NodeContext& node, Made x) {
  Operations& operations = node.operations();
  for (const LayerKind kind : {LayerKind::reshape, LayerKind::flatten})
    if (const Operation* const flat = operations.as(x, kind)) return flat->inputs[0];
  return x;
}

// x (one vector a sample) times `weight`, whose extents are {in, out}.
Made product(const NodeContext& node, Made x, const Array& weight, Operation operation, FullyConnectedOptions options) {
  const Shape& shape = node.operations().shape(x);
  if (shape.rank() != 2)
    node.refuse("it multiplies {} with a matrix, for which there is no layer; flatten it, or use a convolution of 1x1",
                sample_text(shape));
  if (weight.extents.size() != 2 || weight.extents[0] != shape.channels())
    node.refuse("its weight is {}, which does not fit vectors of {}", fmt::join(weight.extents, "x"), shape.channels());
  options.channels = weight.extents[1];
  operation.kind = LayerKind::fully_connected;
  operation.inputs = {flattened_source(node, x)};
  operation.node = &node.node();
  operation.options = options;
  operation.parameters.insert(operation.parameters.begin(), {ParameterRole::weight, transposed(weight, {1, 0})});
  return node.operations().add(std::move(operation));
}

void lower_gemm(const NodeContext& node) {
  if (node.integer("transA", 0) != 0) node.refuse("its first input is transposed, for which there is no layer");
  const double alpha = node.number("alpha", 1), beta = node.number("beta", 1);
  const Made x = node.made(0);
  Array weight = node.array(1, "weight");
  if (weight.extents.size() != 2) node.refuse("its weight has {} axes; it takes 2", weight.extents.size());
  if (node.integer("transB", 0) != 0) weight = transposed(weight, {1, 0});
  Operation operation;
  FullyConnectedOptions options;
  options.bias = false;
  const bool plain = alpha == 1 && beta == 1;
  if (plain) bind_bias(node, 2, weight.extents[1], operation, options.bias);
  Made result = product(node, x, weight, std::move(operation), options);
  if (!plain && node.has_input(2) && beta != 0)
    node.refuse("it has alpha {} and beta {} and a bias, for which there is no layer; fold them into the weights",
                alpha, beta);
  if (!plain) result = node.operations().affine(result, alpha, 0, &node.node());
  node.give(result);
}

void lower_matrix_product(const NodeContext& node) {
  if (node.known(0) != nullptr || node.known(1) == nullptr)
    node.refuse("it multiplies two computed values, for which there is no layer");
  const Array weight = node.array(1, "weight");
  node.give(product(node, node.made(0), weight, {}, {.channels = 0, .bias = false}));
}

constexpr std::array kProductWords{
    Word{"", "Conv", lower_convolution<false>},
    Word{"", "ConvTranspose", lower_convolution<true>},
    Word{"", "Gemm", lower_gemm},
    Word{"", "MatMul", lower_matrix_product},
};

}  // namespace

std::span<const Word> product_words() { return kProductWords; }

}  // namespace tide
