// Functions of constants, element by element.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "foreign/folding.h"

namespace tide {

// A function of two constants, element by element.
void fold_two(const NodeContext& node, const Known& a, const Known& b, ForeignType type,
              const NumberFunction& of_numbers, const FloatFunction& of_floats) {
  const std::vector<Number> extents = broadcast(node, a.extents, b.extents);
  if (!is_floating(a.type) && !is_floating(b.type) && !a.array && !b.array) {
    Known shape;
    shape.extents = extents;
    const std::vector<std::int64_t> fixed = need_fixed(node, shape);
    if (element_count(fixed) > kMostFoldedNumbers) node.refuse("it computes {} numbers", element_count(fixed));
    const std::vector<std::size_t> first = spread_places(need_fixed(node, a), fixed),
                                   second = spread_places(need_fixed(node, b), fixed);
    std::vector<Number> numbers;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const auto result = of_numbers(a.numbers.at(a.same ? 0 : first[i]), b.numbers.at(b.same ? 0 : second[i]));
      if (!result) node.refuse("its result depends on the batch in a way that cannot be followed, or is too large");
      numbers.push_back(*result);
    }
    return node.give(known_numbers(std::move(numbers), fixed, type));
  }
  const auto single = [](const Known& known) -> std::optional<double> {
    if (known.array && !known.array->name.empty()) return std::nullopt;
    return one_value(known);
  };
  if (single(a) && single(b)) return node.give(known_fill(of_floats(*single(a), *single(b)), extents, type));
  const std::int64_t limit = node.lowering().limit;
  const auto first_array = as_array(a, limit), second_array = as_array(b, limit);
  Known result;
  result.type = type;
  result.extents = extents;
  const std::vector<std::int64_t> fixed = need_fixed(node, result);
  check_size(node, fixed);
  if (!first_array || !second_array || !is_floating(type)) node.refuse("it computes with constants that are too large");
  for (const auto* const array : {&*first_array, &*second_array})
    if (!array->name.empty())
      node.lowering().note(fmt::format(
          "'{}' goes into an expression ({}) that was computed once: what comes of it is trained in its place",
          array->name, describe(node.node())));
  const std::vector<double> x = doubles_of(*first_array), y = doubles_of(*second_array);
  const std::vector<std::size_t> first = spread_places(first_array->extents, fixed),
                                 second = spread_places(second_array->extents, fixed);
  std::vector<double> values;
  for (std::size_t i = 0; i < first.size(); ++i) values.push_back(of_floats(x[first[i]], y[second[i]]));
  result.array = made_array(std::move(values), fixed);
  node.give(std::move(result));
}

namespace {

std::optional<Number> as_truth(std::optional<bool> value) {
  return value ? std::optional(Number{*value ? 1 : 0}) : std::nullopt;
}

bool fold_function_of_two(const NodeContext& node) {
  const std::string& op = node.node().op;
  const Known &a = *node.known(0), &b = *node.known(1);
  const auto larger = [](const Number& x, const Number& y) -> std::optional<Number> {
    const auto less = below(x, y);
    return less ? std::optional(*less ? y : x) : std::nullopt;
  };
  const auto smaller = [](const Number& x, const Number& y) -> std::optional<Number> {
    const auto less = below(x, y);
    return less ? std::optional(*less ? x : y) : std::nullopt;
  };
  if (op == "Add")
    fold_two(
        node, a, b, a.type, [](auto x, auto y) { return add(x, y); }, std::plus<>());
  else if (op == "Sub")
    fold_two(
        node, a, b, a.type, [](auto x, auto y) { return subtract(x, y); }, std::minus<>());
  else if (op == "Mul")
    fold_two(
        node, a, b, a.type, [](auto x, auto y) { return multiply(x, y); }, std::multiplies<>());
  else if (op == "Div")
    fold_two(
        node, a, b, a.type, [](auto x, auto y) { return divide(x, y); }, std::divides<>());
  else if (op == "Mod")
    fold_two(
        node, a, b, a.type, [&](auto x, auto y) { return modulo(x, y, node.integer("fmod", 0) != 0); },
        [](double x, double y) { return std::fmod(x, y); });
  else if (op == "Pow")
    fold_two(
        node, a, b, a.type,
        [](const Number& x, const Number& y) -> std::optional<Number> {
          if (!y.is_fixed() || y.constant < 0 || y.constant > 62) return std::nullopt;
          std::optional<Number> result = Number{1};
          for (std::int64_t i = 0; i < y.constant && result; ++i) result = multiply(*result, x);
          return result;
        },
        [](double x, double y) { return std::pow(x, y); });
  else if (op == "Max")
    fold_two(node, a, b, a.type, larger, [](double x, double y) { return std::max(x, y); });
  else if (op == "Min")
    fold_two(node, a, b, a.type, smaller, [](double x, double y) { return std::min(x, y); });
  else if (op == "Equal")
    fold_two(
        node, a, b, ForeignType::boolean, [](auto x, auto y) { return as_truth(equal(x, y)); },
        [](double x, double y) { return x == y ? 1.0 : 0.0; });
  else if (op == "Less")
    fold_two(
        node, a, b, ForeignType::boolean, [](auto x, auto y) { return as_truth(below(x, y)); },
        [](double x, double y) { return x < y ? 1.0 : 0.0; });
  else if (op == "Greater")
    fold_two(
        node, a, b, ForeignType::boolean, [](auto x, auto y) { return as_truth(below(y, x)); },
        [](double x, double y) { return x > y ? 1.0 : 0.0; });
  else if (op == "And" || op == "Or")
    fold_two(
        node, a, b, ForeignType::boolean,
        [&](const Number& x, const Number& y) {
          const bool one = x.constant != 0, other = y.constant != 0;
          return std::optional(Number{(op == "And" ? one && other : one || other) ? 1 : 0});
        },
        [](double, double) { return 0.0; });
  else
    return false;
  return true;
}

void fold_where(const NodeContext& node) {
  const auto condition = numbers_of(*node.known(0));
  if (!condition) node.refuse("its condition is computed while it runs");
  const Known &a = *node.known(1), &b = *node.known(2);
  const auto is_true = [](const Number& n) { return n.constant != 0; };
  Known shape;
  shape.extents = broadcast(node, node.known(0)->extents, broadcast(node, a.extents, b.extents));
  const bool all = std::all_of(condition->begin(), condition->end(), is_true);
  const bool none = std::none_of(condition->begin(), condition->end(), is_true);
  for (const auto& [applies, chosen] : {std::pair(all, &a), std::pair(none, &b)})
    if (applies && chosen->extents == shape.extents) return node.give(*chosen);
  const auto first = numbers_of(a), second = numbers_of(b);
  if (!first || !second) node.refuse("it chooses between constants that are not numbers of a shape");
  const std::vector<std::int64_t> fixed = need_fixed(node, shape);
  if (element_count(fixed) > kMostFoldedNumbers) node.refuse("it chooses {} numbers", element_count(fixed));
  const std::vector<std::size_t> by = spread_places(need_fixed(node, *node.known(0)), fixed),
                                 one = spread_places(need_fixed(node, a), fixed),
                                 other = spread_places(need_fixed(node, b), fixed);
  std::vector<Number> numbers;
  for (std::size_t i = 0; i < by.size(); ++i)
    numbers.push_back(is_true((*condition)[by[i]]) ? (*first)[one[i]] : (*second)[other[i]]);
  node.give(known_numbers(std::move(numbers), fixed, a.type));
}

bool fold_function_of_one(const NodeContext& node) {
  const std::string& op = node.node().op;
  const Known& x = *node.known(0);
  if (op == "Not") {
    Known result = x;
    if (result.array || is_floating(result.type)) return false;
    for (Number& number : result.numbers) number = {number == Number{0} ? 1 : 0};
    node.give(result);
    return true;
  }
  static constexpr std::array kFunctions{
      std::pair<std::string_view, double (*)(double)>{"Sqrt", std::sqrt},
      std::pair<std::string_view, double (*)(double)>{"Exp", std::exp},
      std::pair<std::string_view, double (*)(double)>{"Abs", std::fabs},
      std::pair<std::string_view, double (*)(double)>{"Floor", std::floor},
      std::pair<std::string_view, double (*)(double)>{"Ceil", std::ceil},
      std::pair<std::string_view, double (*)(double)>{"Reciprocal", [](double v) { return 1 / v; }},
      std::pair<std::string_view, double (*)(double)>{"Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
  };
  if (op == "Neg") {
    fold_two(
        node, is_floating(x.type) ? known_fill(0, {}, x.type) : known_numbers({{0}}, {}, x.type), x, x.type,
        [](auto a, auto b) { return subtract(a, b); }, std::minus<>());
    return true;
  }
  for (const auto& [name, function] : kFunctions) {
    if (name != op || !is_floating(x.type)) continue;
    const auto apply = [f = function](double, double value) { return f(value); };
    fold_two(
        node, known_fill(0, {}), x, x.type, [](auto, auto) { return std::optional<Number>(); }, apply);
    return true;
  }
  return false;
}

// Of numbers that are known, as padding that is computed from extents.
bool fold_clip(const NodeContext& node) {
  const Known& x = *node.known(0);
  const auto bound = [&](const char* name, std::size_t input) -> std::optional<double> {
    if (node.has(name)) return node.number(name, 0);
    if (!node.has_input(input)) return std::nullopt;
    const std::optional<double> value = node.scalar(input);
    if (!value) node.refuse("its bound '{}' is not one constant number", name);
    return value;
  };
  const std::optional<double> low = bound("min", 1), high = bound("max", 2);
  if (const auto numbers = whole_numbers(x)) {
    std::vector<Number> clipped;
    for (std::int64_t number : *numbers) {
      if (low && static_cast<double>(number) < *low) number = static_cast<std::int64_t>(*low);
      if (high && static_cast<double>(number) > *high) number = static_cast<std::int64_t>(*high);
      clipped.push_back({number});
    }
    node.give(known_numbers(std::move(clipped), need_fixed(node, x), x.type));
    return true;
  }
  const std::optional<double> value = is_floating(x.type) ? one_value(x) : std::nullopt;
  if (!value) return false;
  double clipped = *value;
  if (low) clipped = std::max(clipped, *low);
  if (high) clipped = std::min(clipped, *high);
  node.give(known_fill(clipped, x.extents, x.type));
  return true;
}

}  // namespace

bool fold_function(const NodeContext& node, std::size_t present) {
  if (node.node().op == "Clip" && fold_clip(node)) return true;
  if (present == 3 && node.node().op == "Where") {
    fold_where(node);
    return true;
  }
  if (present == 2 && node.inputs() == 2 && fold_function_of_two(node)) return true;
  return present == 1 && fold_function_of_one(node);
}

}  // namespace tide
