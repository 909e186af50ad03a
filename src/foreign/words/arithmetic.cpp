// Sums, differences, products and quotients: of two computed values, or of one and constants.
#include <algorithm>
#include <array>
#include <cmath>

#include "foreign/lowering.h"

namespace tide {
namespace {

enum class Arithmetic : std::uint8_t { add, subtract, multiply, divide };

std::string extents_text(const Shape& shape) { return sample_text(shape); }

// A value that was spread in front of an operation which spreads it anyway.
Made without_spread(const Operations& operations, Made value) {
  const Operation* const spread = operations.as(value, Piece::spread);
  return spread != nullptr ? spread->inputs[0] : value;
}

void give_two(const NodeContext& node, Arithmetic operation, Made a, Made b) {
  Operations& operations = node.operations();
  const Made spread_a = a, spread_b = b;
  a = without_spread(operations, a);
  b = without_spread(operations, b);
  const Shape &first = operations.shape(a), &second = operations.shape(b);
  if (first.rank() != second.rank())
    node.refuse("its inputs are {} and {}, whose extents do not stand for the same; reshape one of them",
                extents_text(first), extents_text(second));
  const bool same = first == second;
  if (same && operation == Arithmetic::add) {
    return node.give(operations.layer(LayerKind::add, {a, b}, NoOptions{}, &node.node()));
  }
  if (same && operation == Arithmetic::multiply && a != b)
    return node.give(operations.layer(LayerKind::multiply, {a, b}, NoOptions{}, &node.node()));
  if (a == b && operation == Arithmetic::multiply)
    return node.give(operations.activation(a, ActivationFunction::square, 0, 0, &node.node()));
  static constexpr CombineFunction kFunctions[] = {CombineFunction::add, CombineFunction::subtract,
                                                   CombineFunction::multiply, CombineFunction::divide};
  const Made result = operations.layer(LayerKind::combine, {a, b},
                                       CombineOptions{kFunctions[static_cast<std::size_t>(operation)]}, &node.node());
  // Both may have been spread to more than each other.
  for (const Made spread : {spread_a, spread_b})
    for (std::size_t axis = 1; axis < operations.shape(result).rank(); ++axis)
      if (operations.shape(spread).extent(axis) != 1 &&
          operations.shape(spread).extent(axis) != operations.shape(result).extent(axis))
        node.refuse("its inputs are spread to {}, for which there is no layer", extents_text(operations.shape(spread)));
  node.give(result);
}

// Which axes of x a constant varies over; extents from the back, as they are broadcast.
std::vector<std::int64_t> varying_axes(const NodeContext& node, const Array& array, const Shape& x) {
  std::vector<std::int64_t> axes;
  const std::size_t rank = array.extents.size();
  for (std::size_t i = 0; i < rank; ++i) {
    if (array.extents[i] == 1) continue;
    const std::size_t behind = rank - i;
    if (behind >= x.rank() || x.extent(x.rank() - behind) != array.extents[i])
      node.refuse("its constant has extents {}, which do not fit {}", fmt::join(array.extents, "x"), extents_text(x));
    axes.push_back(static_cast<std::int64_t>(x.rank() - behind));
  }
  return axes;
}

Made with_array(const NodeContext& node, Made x, Array array, bool as_bias) {
  Operations& operations = node.operations();
  Operation scale;
  scale.kind = LayerKind::scale;
  scale.inputs = {x};
  scale.node = &node.node();
  ScaleOptions options;
  options.axes = varying_axes(node, array, operations.shape(x));
  options.weight = !as_bias;
  options.bias = as_bias;
  scale.options = options;
  scale.parameters = {{as_bias ? ParameterRole::shift : ParameterRole::scale, std::move(array)}};
  return operations.add(std::move(scale));
}

template <typename Function>
Array mapped(const Array& array, const Function& function) {
  std::vector<double> values = doubles_of(array);
  for (double& value : values) value = function(value);
  return made_array(std::move(values), array.extents);
}

// `constant` stands behind x if `behind`, before it otherwise.
Made with_constant(const NodeContext& node, Arithmetic operation, Made x, const Known& constant, bool behind) {
  Operations& operations = node.operations();
  if (constant.extents.size() > operations.shape(x).rank())
    node.refuse("its constant has more extents than its other input, {}", extents_text(operations.shape(x)));
  if (const std::optional<double> number = one_value(constant)) {
    if (constant.array && !constant.array->name.empty())
      node.lowering().note(fmt::format("'{}' is a single number ({}): it stays as it is and is not trained",
                                       constant.array->name, *number));
    switch (operation) {
      case Arithmetic::add: return operations.affine(x, 1, *number, &node.node());
      case Arithmetic::subtract:
        return operations.affine(x, behind ? 1 : -1, behind ? -*number : *number, &node.node());
      case Arithmetic::multiply: return operations.affine(x, *number, 0, &node.node());
      case Arithmetic::divide: break;
    }
    if (!behind) node.refuse("it divides a constant by a computed value, for which there is no layer");
    if (*number == 0) node.refuse("it divides by 0");
    return operations.affine(x, 1 / *number, 0, &node.node());
  }
  const std::optional<Array> array = as_array(constant, node.lowering().limit);
  if (!array) node.refuse("its constant is too large, or depends on the batch");
  const auto negative = [&](Made value) { return operations.affine(value, -1, 0, &node.node()); };
  const bool has_name = !array->name.empty();
  switch (operation) {
    case Arithmetic::add: return with_array(node, x, *array, true);
    case Arithmetic::subtract:
      if (!behind) return with_array(node, negative(x), *array, true);
      if (!has_name) return with_array(node, x, mapped(*array, [](double v) { return -v; }), true);
      return negative(with_array(node, negative(x), *array, true));
    case Arithmetic::multiply: return with_array(node, x, *array, false);
    case Arithmetic::divide: break;
  }
  if (!behind) node.refuse("it divides a constant by a computed value, for which there is no layer");
  if (has_name)
    node.lowering().note(fmt::format("values are divided by '{}': it stays as it is and is not trained", array->name));
  return with_array(node, x, mapped(*array, [](double v) { return 1 / v; }), false);
}

Made masked(const NodeContext& node, Made x, const Mask& mask) {
  Operations& operations = node.operations();
  const Shape& shape = operations.shape(x);
  if (!mask.compared) node.refuse("it takes random numbers as they are, for which there is no layer");
  if (!(mask.keep > 0 && mask.keep <= 1)) node.refuse("its mask keeps a share of {}; it must be above 0", mask.keep);
  // Extents from the back; those in front of the mask's own are 1.
  std::vector<Number> extents(shape.rank());
  const std::size_t missing = mask.extents.size() > shape.rank() ? shape.rank() : shape.rank() - mask.extents.size();
  if (mask.extents.size() > shape.rank()) node.refuse("its mask has more extents than what it masks");
  for (std::size_t i = 0; i < shape.rank(); ++i) extents[i] = i < missing ? Number{1} : mask.extents[i - missing];
  const auto is_batch = [&](const Number& n) {
    return n == kBatch || (node.lowering().batch && n == Number{*node.lowering().batch});
  };
  const auto covers = [&](std::size_t axis) { return extents[axis] == Number{shape.extent(axis)}; };
  bool all = is_batch(extents[0]), samples = all, channels = all && shape.rank() > 2 && covers(1);
  for (std::size_t axis = 1; axis < shape.rank(); ++axis) {
    all = all && covers(axis);
    samples = samples && extents[axis] == Number{1};
    if (axis > 1) channels = channels && extents[axis] == Number{1};
  }
  if (!all && !samples && !channels)
    node.refuse(
        "its mask is neither of single values nor of samples nor of their channels, for which there is no layer");
  Made dropped = x;
  if (mask.keep < 1) {
    LayerOptions options = DropoutOptions{.rate = 1 - mask.keep};
    if (!all) options = DropPathOptions{.rate = 1 - mask.keep, .per_channel = !samples};
    dropped = operations.layer(all ? LayerKind::dropout : LayerKind::drop_path, {x}, options, &node.node());
  }
  return operations.affine(dropped, mask.factor * mask.keep, 0, &node.node());
}

std::optional<ForeignValue> with_mask(const NodeContext& node, Arithmetic operation) {
  const Mask* const first = std::get_if<Mask>(&node.value(0));
  const Mask* const second = std::get_if<Mask>(&node.value(1));
  if (first == nullptr && second == nullptr) return std::nullopt;
  if ((operation != Arithmetic::multiply && operation != Arithmetic::divide) ||
      (first != nullptr && second != nullptr) || (operation == Arithmetic::divide && second != nullptr))
    node.refuse("it computes with random numbers in a way for which there is no layer");
  const Mask& mask = first != nullptr ? *first : *second;
  const std::size_t other = first != nullptr ? 1 : 0;
  if (const std::optional<double> number = node.scalar(other)) {
    Mask result = mask;
    result.factor *= operation == Arithmetic::multiply ? *number : 1 / *number;
    return result;
  }
  return masked(node, node.made(other), mask);
}

template <Arithmetic operation>
void lower_arithmetic(const NodeContext& node) {
  if (std::optional<ForeignValue> result = with_mask(node, operation)) return node.give(std::move(*result));
  const Known *const a = node.known(0), *const b = node.known(1);
  if (a != nullptr) return node.give(with_constant(node, operation, node.made(1), *a, false));
  if (b != nullptr) return node.give(with_constant(node, operation, node.made(0), *b, true));
  give_two(node, operation, node.made(0), node.made(1));
}

void lower_sum(const NodeContext& node) {
  std::vector<Made> values;
  for (std::size_t i = 0; i < node.inputs(); ++i) values.push_back(node.made(i));
  if (values.empty()) node.refuse("it has no inputs");
  if (values.size() == 1) return node.give(values[0]);
  node.give(node.operations().layer(LayerKind::add, std::move(values), NoOptions{}, &node.node()));
}

constexpr std::array kArithmeticWords{
    Word{"", "Add", lower_arithmetic<Arithmetic::add>},
    Word{"", "Sub", lower_arithmetic<Arithmetic::subtract>},
    Word{"", "Mul", lower_arithmetic<Arithmetic::multiply>},
    Word{"", "Div", lower_arithmetic<Arithmetic::divide>},
    Word{"", "Sum", lower_sum},
};

}  // namespace

std::span<const Word> arithmetic_words() { return kArithmeticWords; }

}  // namespace tide
