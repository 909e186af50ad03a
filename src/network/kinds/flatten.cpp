#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> shapes(const Layer& /*layer*/, const std::vector<Shape>& inputs) {
  return {Shape{1, inputs[0].per_sample()}};
}

}  // namespace

KindDescription describe_flatten() {
  KindDescription kind;
  kind.shapes = shapes;
  kind.alias = Alias::always;
  kind.passes_gradient = When::always;
  kind.numbered = false;
  return kind;
}

}  // namespace tide
