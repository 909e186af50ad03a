// Layers with several inputs.
#include <algorithm>

#include "network/kind.h"

namespace tide {
namespace {

// Whether two values have the same elements in the same places, batch and channels apart: a vector
// and an image of one pixel do.
bool same_positions(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return a.positions() == 1 && b.positions() == 1;
  return std::ranges::equal(a.extents().subspan(2), b.extents().subspan(2));
}

std::vector<Shape> equal_shapes(const Layer& /*layer*/, const std::vector<Shape>& inputs) {
  for (std::size_t i = 1; i < inputs.size(); ++i)
    require(inputs[i].channels() == inputs[0].channels() && same_positions(inputs[i], inputs[0]),
            "input {} is {} but input 1 is {}; make them equal", i + 1, sample_text(inputs[i]), sample_text(inputs[0]));
  return {inputs[0]};
}

std::vector<Shape> concat_shapes(const Layer& /*layer*/, const std::vector<Shape>& inputs) {
  Shape sum = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    require(same_positions(inputs[i], sum), "input {} is {} but input 1 is {}; make all but the channels equal", i + 1,
            sample_text(inputs[i]), sample_text(inputs[0]));
    sum = sum.with_extent(1, checked_add(sum.channels(), inputs[i].channels()));
  }
  return {sum};
}

KindDescription describe_join() {
  KindDescription kind;
  kind.fewest_inputs = 2;
  kind.most_inputs = kAnyNumber;
  kind.forward.operands = {reads(Role::x), writes(Role::y)};
  kind.checkpoint = true;
  return kind;
}

}  // namespace

// The paper's JOIN hands dy on to its first input and copies it for the others.
KindDescription describe_add() {
  KindDescription kind = describe_join();
  kind.shapes = equal_shapes;
  kind.forward.in_place = {{Role::x, Role::y}};
  kind.passes_gradient = When::minimal;
  kind.backward = {{reads(Role::dy), writes(Role::dx, When::always, Role::dy)}, {{Role::dy, Role::dx}}};
  return kind;
}

KindDescription describe_multiply() {
  KindDescription kind = describe_join();
  kind.most_inputs = 2;
  kind.shapes = equal_shapes;
  kind.forward.in_place = {{Role::x, Role::y}};
  kind.backward = {{reads(Role::x), reads(Role::dy), writes(Role::dx)}, {{Role::dy, Role::dx}, {Role::x, Role::dx}}};
  return kind;
}

KindDescription describe_concat() {
  KindDescription kind = describe_join();
  kind.shapes = concat_shapes;
  kind.backward.operands = {reads(Role::dy), writes(Role::dx)};
  return kind;
}

}  // namespace tide
