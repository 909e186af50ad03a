#include <cmath>
#include <numbers>

#include "foreign/patterns.h"

namespace tide {
namespace {

// x * factor
struct Scaled {
  Made x;
  double factor = 1;
};

Scaled without_factor(const Operations& operations, Made value) {
  const ActivationOptions* const affine = operations.activation(value, ActivationFunction::affine);
  if (affine == nullptr || affine->beta != 0) return {value};
  return {operations.at(value).inputs[0], affine->alpha};
}

Made with_function(Operations& operations, Made x, ActivationFunction function, double factor,
                   const ForeignNode* node) {
  const ActivationOptions usual = ActivationOptions::of(function);
  return operations.affine(operations.activation(x, function, usual.alpha, usual.beta, node), factor, 0, node);
}

// What value is, if it is a multiple of 1 + function(..): that function's operation, and the factor.
struct OneAnd {
  Made function;
  double factor = 0;
};

std::optional<OneAnd> one_and(const Operations& operations, Made value) {
  const ActivationOptions* const affine = operations.activation(value, ActivationFunction::affine);
  if (affine == nullptr || !is_near(affine->alpha, affine->beta)) return std::nullopt;
  return OneAnd{operations.at(value).inputs[0], affine->alpha};
}

bool is_affine_of(const Operations& operations, Made value, Made x, double factor, double term) {
  const ActivationOptions* const affine = operations.activation(value, ActivationFunction::affine);
  return affine != nullptr && operations.at(value).inputs[0] == x && is_near(affine->alpha, factor) &&
         is_near(affine->beta, term);
}

// sqrt(2 / pi) * (x + 0.044715 * x^3)
bool is_gelu_argument(const Operations& operations, Made value, Made x) {
  const Scaled outer = without_factor(operations, value);
  const Operation* const sum = operations.as(outer.x, LayerKind::add);
  if (sum == nullptr || sum->inputs.size() != 2 || !is_near(outer.factor, std::sqrt(2 / std::numbers::pi)))
    return false;
  const Made other = sum->inputs[0] == x ? sum->inputs[1] : sum->inputs[0];
  if (sum->inputs[0] != x && sum->inputs[1] != x) return false;
  const Scaled cube = without_factor(operations, other);
  const Operation* const power = operations.as(cube.x, Piece::cube);
  return power != nullptr && power->inputs[0] == x && is_near(cube.factor, 0.044715);
}

// x * factor is multiplied with `gate`.
std::optional<Made> gated(Operations& operations, const Scaled& x, Made gate, const ForeignNode* node) {
  if (const Operation* const sigmoid = operations.as(gate, LayerKind::sigmoid);
      sigmoid != nullptr && sigmoid->inputs[0] == x.x)
    return with_function(operations, x.x, ActivationFunction::silu, x.factor, node);

  if (const Operation* const tanh = operations.as(gate, LayerKind::tanh)) {
    const ActivationOptions* const softplus = operations.activation(tanh->inputs[0], ActivationFunction::softplus);
    if (softplus != nullptr && softplus->alpha == 1 && operations.at(tanh->inputs[0]).inputs[0] == x.x)
      return with_function(operations, x.x, ActivationFunction::mish, x.factor, node);
  }

  const Scaled plain = without_factor(operations, gate);
  if (const ActivationOptions* const line = operations.activation(plain.x, ActivationFunction::hard_sigmoid);
      line != nullptr && operations.at(plain.x).inputs[0] == x.x && is_near(line->alpha, 1.0 / 6) &&
      is_near(line->beta, 0.5))
    return with_function(operations, x.x, ActivationFunction::hard_swish, x.factor * plain.factor, node);
  // clip(x + 3, 0, 6), which is six times that
  if (const ActivationOptions* const clip = operations.activation(plain.x, ActivationFunction::clip);
      clip != nullptr && clip->alpha == 0 && is_near(clip->beta, 6) &&
      is_affine_of(operations, operations.at(plain.x).inputs[0], x.x, 1, 3))
    return with_function(operations, x.x, ActivationFunction::hard_swish, x.factor * plain.factor * 6, node);

  const std::optional<OneAnd> sum = one_and(operations, gate);
  if (!sum) return std::nullopt;
  if (const Operation* const erf = operations.as(sum->function, Piece::erf);
      erf != nullptr && is_affine_of(operations, erf->inputs[0], x.x, std::numbers::sqrt2 / 2, 0))
    return with_function(operations, x.x, ActivationFunction::gelu, x.factor * sum->factor * 2, node);
  if (const Operation* const tanh = operations.as(sum->function, LayerKind::tanh);
      tanh != nullptr && is_gelu_argument(operations, tanh->inputs[0], x.x))
    return with_function(operations, x.x, ActivationFunction::gelu_tanh, x.factor * sum->factor * 2, node);
  return std::nullopt;
}

// clip(a * x + b, 0, m) / m
std::optional<Made> hard_sigmoid(Operations& operations, const Operation& added) {
  const auto& options = std::get<ActivationOptions>(added.options);
  if (options.function != ActivationFunction::affine || options.beta != 0) return std::nullopt;
  const Made clipped = added.inputs[0];
  const ActivationOptions* const clip = operations.activation(clipped, ActivationFunction::clip);
  if (clip == nullptr || clip->alpha != 0 || !is_near(clip->beta * options.alpha, 1)) return std::nullopt;
  const Made line = operations.at(clipped).inputs[0];
  const ActivationOptions* const affine = operations.activation(line, ActivationFunction::affine);
  if (affine == nullptr) return std::nullopt;
  return operations.activation(operations.at(line).inputs[0], ActivationFunction::hard_sigmoid,
                               affine->alpha / clip->beta, affine->beta / clip->beta, added.node);
}

// x / max(norm of x, epsilon), the norm spread over x or not
std::optional<Made> l2_normalize(Operations& operations, const Operation& added) {
  const Made x = added.inputs[0];
  Made divisor = added.inputs[1];
  if (const Operation* const spread = operations.as(divisor, Piece::spread)) divisor = spread->inputs[0];
  double epsilon = 1e-12;
  const ActivationOptions* const clip = operations.activation(divisor, ActivationFunction::clip);
  if (clip != nullptr && clip->alpha > 0) {
    epsilon = clip->alpha;
    divisor = operations.at(divisor).inputs[0];
  }
  const Operation* const norm = operations.as(divisor, Piece::norm);
  if (norm == nullptr || norm->inputs[0] != x) return std::nullopt;
  const std::int64_t axis = norm->axis;
  return operations.layer(LayerKind::l2_normalize, {x}, L2NormalizeOptions{.axis = axis, .epsilon = epsilon},
                          added.node);
}

}  // namespace

std::optional<Made> join_functions(Operations& operations, const Operation& added) {
  if (added.piece != Piece::none) return std::nullopt;
  if (added.kind == LayerKind::activation) return hard_sigmoid(operations, added);
  if (added.kind == LayerKind::combine && std::get<CombineOptions>(added.options).function == CombineFunction::divide)
    return l2_normalize(operations, added);
  if (added.kind != LayerKind::multiply) return std::nullopt;
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
    const Made a = added.inputs[first], b = added.inputs[1 - first];
    if (const auto found = gated(operations, {a}, b, added.node)) return found;
    if (const Scaled x = without_factor(operations, a); x.factor != 1)
      if (const auto found = gated(operations, x, b, added.node)) return found;
  }
  return std::nullopt;
}

}  // namespace tide
