#include "foreign/operations.h"

#include <algorithm>

#include "foreign/patterns.h"
#include "network/kind.h"

namespace tide {

std::string describe(const ForeignNode& node) {
  std::string text = node.op;
  if (!node.name.empty()) text += fmt::format(" '{}'", node.name);
  if (!node.place.empty()) text += fmt::format(" ({})", node.place);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

void Operations::infer(Operation& operation) const {
  if (operation.piece != Piece::none) {
    operation.outputs = {shape(operation.inputs.at(0))};
    return;
  }
  Layer layer;
  layer.kind = operation.kind;
  layer.options = operation.options;
  std::vector<Shape> inputs;
  for (const Made& input : operation.inputs) inputs.push_back(shape(input));
  try {
    operation.outputs = description_of(operation.kind).shapes(layer, inputs);
    for (const Shape& output : operation.outputs) static_cast<void>(output.elements());  // throws where it overflows
  } catch (const Error& error) {
    if (operation.node == nullptr) throw;
    throw Error("{}: {}", describe(*operation.node), error.what());
  }
}

Made Operations::append(Operation operation) {
  if (operation.outputs.empty()) infer(operation);
  all_.push_back(std::move(operation));
  return {all_.size() - 1, 0};
}

Made Operations::add(Operation operation) {
  if (const std::optional<Made> simpler = simplify(*this, operation)) return *simpler;
  return append(std::move(operation));
}

const Operation* Operations::as(const Made& value, LayerKind kind) const {
  const Operation& operation = at(value);
  return operation.piece == Piece::none && operation.kind == kind ? &operation : nullptr;
}

const Operation* Operations::as(const Made& value, Piece piece) const {
  return at(value).piece == piece ? &at(value) : nullptr;
}

const ActivationOptions* Operations::activation(const Made& value, ActivationFunction function) const {
  const Operation* const operation = as(value, LayerKind::activation);
  if (operation == nullptr) return nullptr;
  const auto& options = std::get<ActivationOptions>(operation->options);
  return options.function == function ? &options : nullptr;
}

bool Operations::is_read_once(const Made& value, const ForeignNode* reader) const {
  const Operation& operation = at(value);
  const ForeignNode* const maker = operation.last != nullptr ? operation.last : operation.node;
  if (maker == nullptr || reader == nullptr || maker->outputs.size() <= value.output) return false;
  const std::string& name = maker->outputs[value.output];
  const auto found = uses_->find(name);
  return found != uses_->end() && found->second == 1 &&
         std::find(reader->inputs.begin(), reader->inputs.end(), name) != reader->inputs.end();
}

Made Operations::activation(Made x, ActivationFunction function, double alpha, double beta, const ForeignNode* node) {
  ActivationOptions options;
  options.function = function;
  options.alpha = alpha;
  options.beta = beta;
  return layer(LayerKind::activation, {x}, options, node);
}

Made Operations::reshape(Made x, const Shape& sample, const ForeignNode* node) {
  return layer(LayerKind::reshape, {x}, ReshapeOptions{sample}, node);
}

Made Operations::layer(LayerKind kind, std::vector<Made> inputs, LayerOptions options, const ForeignNode* node) {
  Operation operation;
  operation.kind = kind;
  operation.inputs = std::move(inputs);
  operation.options = std::move(options);
  operation.node = node;
  return add(std::move(operation));
}

}  // namespace tide
