#include "network/shapes.h"

#include "network/kind.h"

namespace tide {
namespace {

void check_input_count(const KindDescription& kind, std::size_t count) {
  const auto given = static_cast<int>(count);
  if (given >= kind.fewest_inputs && (kind.most_inputs == kAnyNumber || given <= kind.most_inputs)) return;
  constexpr const char* kNumbers[] = {"none", "one", "two"};
  throw Error("it has {} inputs; give {}{}", count, kNumbers[kind.fewest_inputs],
              kind.most_inputs == kAnyNumber ? " or more" : "");
}

std::vector<Shape> infer(const Layer& layer, const std::vector<Shape>& inputs) {
  const KindDescription& kind = description_of(layer.kind);
  require(layer.options.index() == kind.defaults.index(), "its options are those of another kind of layer");
  check_input_count(kind, inputs.size());
  return kind.shapes(layer, inputs);
}

}  // namespace

std::vector<Shape> infer_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  try {
    std::vector<Shape> outputs = infer(layer, inputs);
    for (const Shape& shape : outputs) static_cast<void>(shape.elements());  // throws where it overflows
    return outputs;
  } catch (const Error& error) {
    throw Error("layer '{}' ({}): {}", layer.name, kind_name(layer.kind), error.what());
  }
}

}  // namespace tide
