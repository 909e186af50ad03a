// Shapes, and constants that are computed from them: what an exporter could have computed itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "foreign/fold.h"
#include "foreign/lowering.h"

namespace tide {
namespace {

constexpr std::int64_t kMostNumbers = 1024;

ForeignType type_of(const NodeContext& node, std::int64_t number) {
  switch (number) {
    case 1: return ForeignType::f32;
    case 2: return ForeignType::u8;
    case 3: return ForeignType::i8;
    case 5: return ForeignType::i16;
    case 6: return ForeignType::i32;
    case 7: return ForeignType::i64;
    case 9: return ForeignType::boolean;
    case 10: return ForeignType::f16;
    case 11: return ForeignType::f64;
    case 16: return ForeignType::bf16;
    default: break;
  }
  node.refuse("its type has the number {}, which is not supported", number);
}

std::vector<std::int64_t> need_fixed(const NodeContext& node, const Known& known) {
  auto extents = fixed_extents(known);
  if (!extents) node.refuse("its constant's extents depend on the batch, and it would have to be known");
  return std::move(*extents);
}

// Where each element of a result comes from.
struct Gathered {
  std::vector<std::int64_t> extents;
  std::vector<std::size_t> places;
};

Known pick(const NodeContext& node, const Known& from, const Gathered& gathered) {
  if (from.fill || from.same) {
    Known result = from;
    result.extents.clear();
    for (const std::int64_t extent : gathered.extents) result.extents.push_back({extent});
    return result;
  }
  if (!from.array) {
    std::vector<Number> numbers;
    for (const std::size_t place : gathered.places) numbers.push_back(from.numbers.at(place));
    return known_numbers(std::move(numbers), gathered.extents, from.type);
  }
  const std::vector<double> values = doubles_of(*from.array);
  std::vector<double> picked;
  for (const std::size_t place : gathered.places) picked.push_back(values.at(place));
  static_cast<void>(node);
  Known result;
  result.type = from.type;
  for (const std::int64_t extent : gathered.extents) result.extents.push_back({extent});
  if (is_floating(from.type)) {
    result.array = made_array(std::move(picked), gathered.extents);
  } else {
    if (static_cast<std::int64_t>(picked.size()) > kMostNumbers)
      node.refuse("it takes {} numbers of a table", picked.size());
    for (const double value : picked) result.numbers.push_back({static_cast<std::int64_t>(value)});
  }
  return result;
}

void check_size(const NodeContext& node, const std::vector<std::int64_t>& extents) {
  if (element_count(extents) > node.lowering().limit)
    node.refuse("it would make a constant of {} elements, more than the whole model has", element_count(extents));
}

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> strides;
  std::int64_t stride = 1;
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
    strides.push_back(stride);
    stride = checked_multiply(stride, std::max<std::int64_t>(1, *extent));
  }
  std::reverse(strides.begin(), strides.end());
  return strides;
}

// The places first + the sum of i * stride over the axes, for all i below the counts.
std::vector<std::size_t> strided_places(std::int64_t first, const std::vector<std::int64_t>& strides,
                                        const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> at(counts.size(), 0);
  std::vector<std::size_t> places;
  std::int64_t place = first;
  for (std::int64_t left = element_count(counts); left > 0; --left) {
    places.push_back(static_cast<std::size_t>(place));
    for (std::size_t axis = counts.size(); axis-- > 0;) {
      place += strides[axis];
      if (++at[axis] < counts[axis]) break;
      place -= strides[axis] * at[axis];
      at[axis] = 0;
    }
  }
  return places;
}

void fold_gather(const NodeContext& node) {
  const Known &data = *node.known(0), &list = *node.known(1);
  const std::vector<std::int64_t> extents = need_fixed(node, data), index_extents = need_fixed(node, list);
  const auto indices = whole_numbers(list);
  if (!indices) node.refuse("its indices are too many, or depend on the batch");
  const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 0), extents.size()));
  std::vector<std::int64_t> counts(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(axis));
  counts.insert(counts.end(), index_extents.begin(), index_extents.end());
  counts.insert(counts.end(), extents.begin() + static_cast<std::ptrdiff_t>(axis) + 1, extents.end());
  check_size(node, counts);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= extents[i];
  for (std::size_t i = axis + 1; i < extents.size(); ++i) inner *= extents[i];
  Gathered result{counts, {}};
  for (std::int64_t o = 0; o < outer; ++o)
    for (const std::int64_t given : *indices) {
      const std::int64_t index = given < 0 ? given + extents[axis] : given;
      if (index < 0 || index >= extents[axis]) node.refuse("it takes element {} of {}", given, extents[axis]);
      for (std::int64_t i = 0; i < inner; ++i)
        result.places.push_back(static_cast<std::size_t>((o * extents[axis] + index) * inner + i));
    }
  node.give(pick(node, data, result));
}

void fold_slice(const NodeContext& node) {
  const Known& data = *node.known(0);
  const std::vector<std::int64_t> extents = need_fixed(node, data);
  const auto starts = node.list("starts", 1), ends = node.list("ends", 2), given_steps = node.list("steps", 4);
  auto axes = node.list("axes", 3);
  if (!starts || !ends) node.refuse("its starts or ends are missing");
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (starts->size() != ends->size() || axes->size() != starts->size() ||
      (given_steps && given_steps->size() != starts->size()))
    node.refuse("its starts, ends, axes and steps are not as many");
  std::vector<std::int64_t> counts = extents, strides = row_major_strides(extents);
  std::int64_t beginning = 0;
  std::vector<bool> sliced(extents.size(), false);
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const auto axis = static_cast<std::size_t>(node.axis((*axes)[i], extents.size()));
    const std::int64_t extent = extents[axis], step = given_steps ? (*given_steps)[i] : 1;
    if (sliced[axis]) node.refuse("it names an axis twice");
    sliced[axis] = true;
    if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) node.refuse("its step is {}", step);
    const auto place = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
      return std::clamp(at < 0 ? at + extent : at, low, high);
    };
    const std::int64_t first = step > 0 ? place((*starts)[i], 0, extent) : place((*starts)[i], 0, extent - 1);
    const std::int64_t end = step > 0 ? place((*ends)[i], 0, extent) : place((*ends)[i], -1, extent - 1);
    const std::int64_t span = step > 0 ? end - first : first - end, each = step > 0 ? step : -step;
    counts[axis] = span <= 0 ? 0 : (span - 1) / each + 1;
    beginning += first * strides[axis];
    strides[axis] = checked_multiply(strides[axis], step);
  }
  check_size(node, counts);
  node.give(pick(node, data, {counts, strided_places(beginning, strides, counts)}));
}

void fold_concat(const NodeContext& node) {
  std::vector<Number> numbers;
  std::vector<double> values;
  std::vector<std::int64_t> extents;
  bool floats = false;
  ForeignType type = ForeignType::i64;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    const Known& part = *node.known(i);
    const std::vector<std::int64_t> own = need_fixed(node, part);
    const std::int64_t axis = node.axis(node.integer("axis", 0), own.size());
    if (axis != 0) node.refuse("it joins constants along axis {}; there is a way for the first", axis);
    if (i == 0) {
      extents = own;
      extents[0] = 0;
      floats = is_floating(part.type);
      type = part.type;
    }
    if (own.size() != extents.size() || !std::equal(own.begin() + 1, own.end(), extents.begin() + 1) ||
        floats != is_floating(part.type))
      node.refuse("it joins constants that do not fit each other");
    extents[0] = checked_add(extents[0], own[0]);
    check_size(node, extents);
    if (floats) {
      const auto array = as_array(part, node.lowering().limit);
      if (!array) node.refuse("it joins constants that are too large");
      const std::vector<double> more = doubles_of(*array);
      values.insert(values.end(), more.begin(), more.end());
    } else {
      const auto more = numbers_of(part);
      if (!more || numbers.size() + more->size() > static_cast<std::size_t>(kMostNumbers))
        node.refuse("it joins more numbers than a shape has");
      numbers.insert(numbers.end(), more->begin(), more->end());
    }
  }
  if (!floats) return node.give(known_numbers(std::move(numbers), extents, type));
  Known result;
  result.type = type;
  for (const std::int64_t extent : extents) result.extents.push_back({extent});
  result.array = made_array(std::move(values), extents);
  node.give(result);
}

// The same elements with other extents.
void give_with_extents(const NodeContext& node, std::vector<std::int64_t> extents) {
  Known result = *node.known(0);
  if (element_count(extents) != element_count(need_fixed(node, result)))
    node.refuse("its result of {} does not have as many elements as its input", fmt::join(extents, "x"));
  if (result.array) result.array = reshaped(*result.array, extents);
  result.extents.clear();
  for (const std::int64_t extent : extents) result.extents.push_back({extent});
  node.give(std::move(result));
}

void fold_reshape(const NodeContext& node) {
  const std::vector<std::int64_t> extents = need_fixed(node, *node.known(0));
  const Known* const wanted = node.known(1);
  auto target = wanted != nullptr ? whole_numbers(*wanted) : std::nullopt;
  if (!target) node.refuse("a constant's new shape depends on the batch");
  std::int64_t given = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < target->size(); ++i) {
    std::int64_t& extent = (*target)[i];
    if (extent == 0 && node.integer("allowzero", 0) == 0) {
      if (i >= extents.size()) node.refuse("it keeps extent {} of {}", i + 1, extents.size());
      extent = extents[i];
    }
    if (extent == -1) {
      if (open) node.refuse("it leaves two extents open");
      open = i;
      continue;
    }
    if (extent < 0) node.refuse("it asks for an extent of {}", extent);
    given = checked_multiply(given, extent);
  }
  if (open) (*target)[*open] = given > 0 ? element_count(extents) / given : 0;
  give_with_extents(node, *target);
}

void fold_flatten(const NodeContext& node) {
  const std::vector<std::int64_t> extents = need_fixed(node, *node.known(0));
  const std::int64_t given = node.integer("axis", 1);
  const auto axis = given == static_cast<std::int64_t>(extents.size()) ? given : node.axis(given, extents.size());
  std::int64_t before = 1, behind = 1;
  for (std::size_t i = 0; i < extents.size(); ++i)
    (static_cast<std::int64_t>(i) < axis ? before : behind) *= extents[i];
  give_with_extents(node, {before, behind});
}

void fold_squeeze(const NodeContext& node) {
  const std::vector<std::int64_t> extents = need_fixed(node, *node.known(0));
  std::vector<bool> taken(extents.size(), false);
  if (const auto axes = node.list("axes", 1))
    for (const std::int64_t axis : *axes) taken[static_cast<std::size_t>(node.axis(axis, extents.size()))] = true;
  else
    for (std::size_t i = 0; i < extents.size(); ++i) taken[i] = extents[i] == 1;
  std::vector<std::int64_t> left;
  for (std::size_t i = 0; i < extents.size(); ++i)
    if (!taken[i]) left.push_back(extents[i]);
  give_with_extents(node, left);
}

void fold_unsqueeze(const NodeContext& node) {
  std::vector<std::int64_t> extents = need_fixed(node, *node.known(0));
  const auto given = node.list("axes", 1);
  if (!given || given->size() > 8) node.refuse("its axes are missing or too many");
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : *given) axes.push_back(node.axis(axis, extents.size() + given->size()));
  std::sort(axes.begin(), axes.end());
  for (const std::int64_t axis : axes) {
    if (axis > static_cast<std::int64_t>(extents.size())) node.refuse("it names an axis twice");
    extents.insert(extents.begin() + axis, 1);
  }
  give_with_extents(node, extents);
}

void fold_transpose(const NodeContext& node) {
  const Known& data = *node.known(0);
  const std::vector<std::int64_t> extents = need_fixed(node, data);
  std::vector<std::int64_t> given = node.integers("perm");
  if (given.empty()) {
    given.resize(extents.size());
    std::iota(given.rbegin(), given.rend(), 0);
  }
  std::vector<std::size_t> axes;
  std::vector<bool> seen(extents.size(), false);
  for (const std::int64_t axis : given) {
    axes.push_back(static_cast<std::size_t>(node.axis(axis, extents.size())));
    seen[axes.back()] = true;
  }
  if (axes.size() != extents.size() || std::find(seen.begin(), seen.end(), false) != seen.end())
    node.refuse("its 'perm' is no order of its {} axes", extents.size());
  if (data.array) return node.give(known_array(transposed(*data.array, axes)));
  const std::vector<std::int64_t> own = row_major_strides(extents);
  std::vector<std::int64_t> strides, counts;
  for (const std::size_t axis : axes) {
    strides.push_back(own[axis]);
    counts.push_back(extents[axis]);
  }
  node.give(pick(node, data, {counts, strided_places(0, strides, counts)}));
}

std::vector<Number> broadcast(const NodeContext& node, const std::vector<Number>& a, const std::vector<Number>& b) {
  std::vector<Number> result(std::max(a.size(), b.size()), Number{1});
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Number one = i < a.size() ? a[a.size() - 1 - i] : Number{1};
    const Number other = i < b.size() ? b[b.size() - 1 - i] : Number{1};
    if (!(one == other) && !(one == Number{1}) && !(other == Number{1}))
      node.refuse("its constants have extents that do not fit each other");
    result[result.size() - 1 - i] = one == Number{1} ? other : one;
  }
  return result;
}

// Which element of a constant stands at each place of a result that it is spread to.
std::vector<std::size_t> spread_places(const std::vector<std::int64_t>& own, const std::vector<std::int64_t>& result) {
  const std::vector<std::int64_t> row_major = row_major_strides(own);
  std::vector<std::int64_t> strides(result.size(), 0);
  for (std::size_t i = 0; i < own.size(); ++i)
    if (own[i] != 1) strides[result.size() - own.size() + i] = row_major[i];
  return strided_places(0, strides, result);
}

void fold_expand(const NodeContext& node) {
  const Known& data = *node.known(0);
  const Known* const wanted = node.known(1);
  const auto target = wanted != nullptr ? numbers_of(*wanted) : std::nullopt;
  if (!target) node.refuse("what it is spread to is computed while it runs");
  for (const Number& extent : *target)
    if (extent.is_fixed() && extent.constant < 0) node.refuse("it is spread to an extent of {}", extent.constant);
  const std::vector<Number> extents = broadcast(node, data.extents, *target);
  if (extents == data.extents) return node.give(data);
  if (const std::optional<double> value = one_value(data); value && (!data.array || data.array->name.empty()))
    return node.give(known_fill(*value, extents, data.type));
  Known shape;
  shape.extents = extents;
  const std::vector<std::int64_t> fixed = need_fixed(node, shape);
  check_size(node, fixed);
  node.give(pick(node, data, {fixed, spread_places(need_fixed(node, data), fixed)}));
}

using NumberFunction = std::function<std::optional<Number>(const Number&, const Number&)>;
using FloatFunction = std::function<double(double, double)>;

// A function of two constants, element by element.
void fold_two(const NodeContext& node, const Known& a, const Known& b, ForeignType type,
              const NumberFunction& of_numbers, const FloatFunction& of_floats) {
  const std::vector<Number> extents = broadcast(node, a.extents, b.extents);
  if (!is_floating(a.type) && !is_floating(b.type) && !a.array && !b.array) {
    Known shape;
    shape.extents = extents;
    const std::vector<std::int64_t> fixed = need_fixed(node, shape);
    if (element_count(fixed) > kMostNumbers) node.refuse("it computes {} numbers", element_count(fixed));
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
  if (element_count(fixed) > kMostNumbers) node.refuse("it chooses {} numbers", element_count(fixed));
  const std::vector<std::size_t> by = spread_places(need_fixed(node, *node.known(0)), fixed),
                                 one = spread_places(need_fixed(node, a), fixed),
                                 other = spread_places(need_fixed(node, b), fixed);
  std::vector<Number> numbers;
  for (std::size_t i = 0; i < by.size(); ++i)
    numbers.push_back(is_true((*condition)[by[i]]) ? (*first)[one[i]] : (*second)[other[i]]);
  node.give(known_numbers(std::move(numbers), fixed, a.type));
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
  const auto array = as_array(known, kMostNumbers);
  if (!array || element_count(array->extents) > kMostNumbers) node.refuse("it makes too many fractions whole numbers");
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

void fold_constant_of_shape(const NodeContext& node) {
  const auto extents = numbers_of(*node.known(0));
  if (!extents) node.refuse("its shape is computed while it runs");
  for (const Number& extent : *extents)
    if (extent.is_fixed() && extent.constant < 0) node.refuse("its shape has an extent of {}", extent.constant);
  Known value = known_fill(0, {});
  if (const ForeignAttribute* const given = node.attribute("value"))
    if (const auto* const tensor = std::get_if<ForeignTensor>(given)) value = known_array(array_of("", *tensor));
  const std::optional<double> number = one_value(value);
  if (!number) node.refuse("its value is not one number");
  node.give(known_fill(*number, *extents, value.type));
}

void fold_range(const NodeContext& node) {
  std::vector<std::int64_t> ends;
  for (std::size_t i = 0; i < 3; ++i) {
    const Known* const known = node.known(i);
    const auto numbers = known != nullptr ? whole_numbers(*known) : std::nullopt;
    if (!numbers || numbers->size() != 1) node.refuse("its ends are no whole numbers that are known");
    ends.push_back(numbers->front());
  }
  std::vector<Number> numbers;
  if (ends[2] == 0) node.refuse("its step is 0");
  for (std::int64_t at = ends[0]; ends[2] > 0 ? at < ends[1] : at > ends[1]; at = checked_add(at, ends[2])) {
    if (static_cast<std::int64_t>(numbers.size()) >= kMostNumbers)
      node.refuse("it has more than {} numbers", kMostNumbers);
    numbers.push_back({at});
  }
  const auto count = static_cast<std::int64_t>(numbers.size());
  node.give(known_numbers(std::move(numbers), {count}));
}

void fold_product(const NodeContext& node) {
  const auto numbers = numbers_of(*node.known(0));
  if (!numbers || node.known(0)->extents.size() != 1) node.refuse("it multiplies more than the numbers of a shape");
  std::optional<Number> product = Number{1};
  for (const Number& number : *numbers)
    if (product) product = multiply(*product, number);
  if (!product) node.refuse("its result depends on the batch in a way that cannot be followed, or is too large");
  std::vector<std::int64_t> extents;
  if (node.integer("keepdims", 1) != 0) extents = {1};
  node.give(known_numbers({*product}, extents));
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
        node, known_numbers({{0}}, {}, x.type), x, x.type, [](auto a, auto b) { return subtract(a, b); },
        std::minus<>());
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

constexpr std::array<std::pair<std::string_view, void (*)(const NodeContext&)>, 12> kFolds{{
    {"Gather", fold_gather},
    {"Slice", fold_slice},
    {"Concat", fold_concat},
    {"Reshape", fold_reshape},
    {"Flatten", fold_flatten},
    {"Squeeze", fold_squeeze},
    {"Unsqueeze", fold_unsqueeze},
    {"Transpose", fold_transpose},
    {"Expand", fold_expand},
    {"ConstantOfShape", fold_constant_of_shape},
    {"Range", fold_range},
    {"ReduceProd", fold_product},
}};

}  // namespace

std::span<const Word> number_words() { return kNumberWords; }

bool fold(const NodeContext& node) {
  if (!node.node().domain.empty() || node.inputs() == 0) return false;
  std::size_t present = 0;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    if (!node.has_input(i)) continue;
    ++present;
    const auto found = node.lowering().values.find(node.node().inputs[i]);
    if (found == node.lowering().values.end() || !std::holds_alternative<Known>(found->second)) return false;
  }
  if (present == 0 || !node.has_input(0)) return false;
  for (const auto& [op, function] : kFolds)
    if (op == node.node().op) {
      function(node);
      return true;
    }
  if (node.node().op == "Where" && present == 3) {
    fold_where(node);
    return true;
  }
  if (present == 2 && node.inputs() == 2 && fold_function_of_two(node)) return true;
  return present == 1 && fold_function_of_one(node);
}

}  // namespace tide
