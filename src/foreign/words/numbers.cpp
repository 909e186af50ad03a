// Shapes, types, and constants that stand in nodes.
#include <array>
#include <cmath>

#include "foreign/folding.h"
#include "foreign/lowering.h"

namespace tide {
namespace {

ForeignType type_of(const NodeContext& node, std::int64_t number) {
  if (const auto type = foreign_type_of(number)) return *type;
  node.refuse("its type has the number {}, which is not supported", number);
}

Known as_type(const NodeContext& node, const Known& known, ForeignType type) {
  Known result = known;
  result.type = type;
  if (is_floating(type) == is_floating(known.type)) {
    if (type == ForeignType::boolean && !result.array)
      for (Number& number : result.numbers) {
        if (!number.is_fixed()) number = {1};  // a batch, which is not 0
        number = {number.constant != 0 ? 1 : 0};
      }
    return result;
  }
  if (is_floating(type)) {
    if (const auto value = one_value(known)) return known_fill(*value, known.extents, type);
    const auto array = as_array(known, node.lowering().limit);
    if (!array) node.refuse("it makes a number that depends on the batch a fraction");
    result.numbers.clear();
    result.same = false;
    result.array = array;
    return result;
  }
  const auto whole = [&](double value) {
    if (!(std::abs(value) < 0x1p62)) node.refuse("it makes {} a whole number", value);
    return Number{type == ForeignType::boolean ? (value != 0 ? 1 : 0) : static_cast<std::int64_t>(value)};
  };
  result.array.reset();
  result.fill.reset();
  if (const auto value = one_value(known)) {
    result.numbers = {whole(*value)};
    result.same = true;
    return result;
  }
  const auto array = as_array(known, kMostFoldedNumbers);
  if (!array || element_count(array->extents) > kMostFoldedNumbers)
    node.refuse("it makes too many fractions whole numbers");
  for (const double value : doubles_of(*array)) result.numbers.push_back(whole(value));
  return result;
}

void fold_constant(const NodeContext& node) {
  const auto list = [](const auto& values) {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(values.size())};
  };
  if (const ForeignAttribute* const tensor = node.attribute("value")) {
    if (const auto* const value = std::get_if<ForeignTensor>(tensor))
      return node.give(known_array(array_of("", *value)));
  } else if (node.has("value_int")) {
    return node.give(known_numbers({{node.integer("value_int", 0)}}, {}));
  } else if (node.has("value_float")) {
    return node.give(known_fill(node.number("value_float", 0), {}));
  } else if (node.has("value_ints")) {
    std::vector<Number> numbers;
    for (const std::int64_t value : node.integers("value_ints")) numbers.push_back({value});
    return node.give(known_numbers(numbers, list(numbers)));
  } else if (const ForeignAttribute* const floats = node.attribute("value_floats")) {
    if (const auto* const values = std::get_if<std::vector<double>>(floats))
      return node.give(known_array(made_array(*values, list(*values))));
  }
  node.refuse("its value is of a kind that is not supported");
}

void lower_shape(const NodeContext& node) {
  std::vector<Number> extents;
  if (const Known* const known = node.known(0)) {
    extents = known->extents;
  } else {
    for (const std::int64_t extent : node.shape(0).extents()) extents.push_back({extent});
    extents[0] = kBatch;
  }
  const auto rank = static_cast<std::int64_t>(extents.size());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = place(node.integer("start", 0)), end = place(node.integer("end", rank));
  std::vector<Number> part;
  for (std::int64_t i = start; i < end; ++i) part.push_back(extents[static_cast<std::size_t>(i)]);
  const auto count = static_cast<std::int64_t>(part.size());
  node.give(known_numbers(std::move(part), {count}));
}

void lower_size(const NodeContext& node) {
  if (const Known* const known = node.known(0)) {
    std::optional<Number> product = Number{1};
    for (const Number& extent : known->extents)
      if (product) product = multiply(*product, extent);
    if (!product) node.refuse("it depends on the batch in a way that cannot be followed");
    return node.give(known_numbers({*product}, {}));
  }
  node.give(known_numbers({Number{0, node.shape(0).per_sample()}}, {}));
}

// Values stay what they are; masks, too.
void lower_identity(const NodeContext& node) { node.give(node.value(0)); }

void lower_cast(const NodeContext& node) {
  if (const Known* const known = node.known(0)) {
    ForeignType type = ForeignType::f32;
    if (node.node().op == "Cast")
      type = type_of(node, node.integer("to", 0));
    else if (const Known* const like = node.known(1))
      type = like->type;
    return node.give(as_type(node, *known, type));
  }
  if (node.node().op == "Cast" && std::holds_alternative<Made>(node.value(0)) &&
      !is_floating(type_of(node, node.integer("to", 0))))
    node.refuse("it makes computed values whole numbers, for which there is no layer");
  node.give(node.value(0));
}

constexpr std::array kNumberWords{
    Word{"", "Shape", lower_shape}, Word{"", "Size", lower_size},     Word{"", "Identity", lower_identity},
    Word{"", "Cast", lower_cast},   Word{"", "CastLike", lower_cast}, Word{"", "Constant", fold_constant},
};

}  // namespace

std::span<const Word> number_words() { return kNumberWords; }

}  // namespace tide
