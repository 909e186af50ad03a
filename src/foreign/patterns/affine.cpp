#include "foreign/patterns.h"

namespace tide {

std::optional<Made> join_affine(Operations& operations, const Operation& added) {
  if (added.piece != Piece::none || added.kind != LayerKind::activation) return std::nullopt;
  const auto& options = std::get<ActivationOptions>(added.options);
  if (options.function != ActivationFunction::affine) return std::nullopt;
  const Made x = added.inputs.at(0);
  if (is_near(options.alpha, 1) && options.beta == 0) return x;
  const ActivationOptions* const before = operations.activation(x, ActivationFunction::affine);
  if (before == nullptr) return std::nullopt;
  return operations.affine(operations.at(x).inputs[0], before->alpha * options.alpha,
                           before->beta * options.alpha + options.beta, added.node);
}

}  // namespace tide
