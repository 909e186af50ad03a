// Functions of single elements, of one value and of several.
#include <algorithm>

#include "foreign/raiser.h"

namespace tide {

void Raiser::raise_chain(const Layer& layer, const char* op) {
  std::string sum = with_rank(layer, 0, layer.outputs[0]);
  for (std::size_t i = 1; i < layer.inputs.size(); ++i) {
    const bool last = i + 1 == layer.inputs.size();
    const std::string to = last ? layer.name : fmt::format("{}:{}", layer.name, i);
    node(layer, op, {sum, with_rank(layer, i, layer.outputs[0])}, {to});
    sum = to;
  }
}

void Raiser::raise_activation(const Layer& layer) {
  const auto& options = layer.as<ActivationOptions>();
  const std::string x = input(layer);
  using F = ActivationFunction;
  switch (options.function) {
    case F::clip:
      node(layer, "Clip", {x, number(layer, "min", options.alpha), number(layer, "max", options.beta)});
      return;
    case F::leaky_relu: node(layer, "LeakyRelu", {x}).attributes["alpha"] = options.alpha; return;
    case F::elu: node(layer, "Elu", {x}).attributes["alpha"] = options.alpha; return;
    case F::silu:
      node(layer, "Sigmoid", {x}, {layer.name + ":gate"});
      node(layer, "Mul", {x, layer.name + ":gate"});
      return;
    case F::gelu:
    case F::gelu_tanh:
      node(layer, "Gelu", {x}).attributes["approximate"] = std::string(options.function == F::gelu ? "none" : "tanh");
      return;
    case F::hard_sigmoid:
      node(layer, "HardSigmoid", {x}).attributes = {{"alpha", options.alpha}, {"beta", options.beta}};
      return;
    case F::hard_swish: return raise_plain(layer, "HardSwish");
    case F::mish: return raise_plain(layer, "Mish");
    case F::softplus: return raise_softplus(layer, options);
    case F::affine: return raise_affine(layer, options);
    case F::square: node(layer, "Mul", {x, x}); return;
    case F::exp: return raise_plain(layer, "Exp");
    case F::sqrt: return raise_plain(layer, "Sqrt");
    case F::abs: return raise_plain(layer, "Abs");
  }
  refuse(layer, "its function");
}

void Raiser::raise_softplus(const Layer& layer, const ActivationOptions& options) {
  constexpr double kLinearInFloats = 16;  // from there on both are the same
  if (options.beta < kLinearInFloats) refuse(layer, fmt::format("a softplus that is linear from {} on", options.beta));
  const double alpha = options.alpha;
  if (alpha == 1) return raise_plain(layer, "Softplus");
  const std::string factor = number(layer, "factor", alpha);
  node(layer, "Mul", {input(layer), factor}, {layer.name + ":stretched"});
  node(layer, "Softplus", {layer.name + ":stretched"}, {layer.name + ":plus"});
  node(layer, "Div", {layer.name + ":plus", factor});
}

void Raiser::raise_affine(const Layer& layer, const ActivationOptions& options) {
  const bool shifted = options.beta != 0;
  std::string x = input(layer);
  if (options.alpha != 1 || !shifted) {
    const std::string to = shifted ? layer.name + ":scaled" : layer.name;
    node(layer, "Mul", {x, number(layer, "factor", options.alpha)}, {to});
    x = to;
  }
  if (shifted) node(layer, "Add", {x, number(layer, "term", options.beta)});
}

void Raiser::raise_combine(const Layer& layer) {
  static constexpr const char* kWords[] = {"Add", "Sub", "Mul", "Div"};
  node(layer, kWords[static_cast<std::size_t>(layer.as<CombineOptions>().function)],
       {with_rank(layer, 0, layer.outputs[0]), with_rank(layer, 1, layer.outputs[0])});
}

void Raiser::raise_scale(const Layer& layer) {
  const auto& options = layer.as<ScaleOptions>();
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 1; axis < shape(layer).rank(); ++axis) {
    const bool varies =
        std::find(options.axes.begin(), options.axes.end(), static_cast<std::int64_t>(axis)) != options.axes.end();
    extents.push_back(varies ? shape(layer).extent(axis) : 1);
  }
  std::string x = input(layer);
  const auto apply = [&](const char* op, ParameterRole role, const std::string& to) {
    // The array may be seen in other extents than those that spread it over the value.
    std::string by = array(layer, role, extents);
    if (result_.graph.constants.at(by).shape != extents) {
      const std::string seen = fmt::format("{}:{}", to, op);
      node(layer, "Reshape", {by, whole_numbers(layer, (std::string(op) + ".shape").c_str(), extents)}, {seen});
      by = seen;
    }
    node(layer, op, {x, by}, {to});
    x = to;
  };
  if (options.weight) apply("Mul", ParameterRole::scale, options.bias ? layer.name + ":scaled" : layer.name);
  if (options.bias) apply("Add", ParameterRole::shift, layer.name);
}

void Raiser::raise_l2(const Layer& layer) {
  const auto& options = layer.as<L2NormalizeOptions>();
  ForeignNode& norm =
      node(layer, "ReduceL2", {input(layer), whole_numbers(layer, "axis", {options.axis})}, {layer.name + ":norm"});
  norm.attributes["keepdims"] = std::int64_t{1};
  node(layer, "Max", {layer.name + ":norm", number(layer, "least", options.epsilon)}, {layer.name + ":length"});
  node(layer, "Div", {input(layer), layer.name + ":length"});
}

}  // namespace tide
