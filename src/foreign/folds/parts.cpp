// Parts of constants: elements by index, ranges, rows behind each other, and constants that are spread.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "foreign/folding.h"

namespace tide {
namespace {

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
  Gathered result{counts, {}};
  if (element_count(counts) == 0 || data.fill || data.same) return node.give(pick(node, data, result));
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= extents[i];
  for (std::size_t i = axis + 1; i < extents.size(); ++i) inner *= extents[i];
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
      if (!more || numbers.size() + more->size() > static_cast<std::size_t>(kMostFoldedNumbers))
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

constexpr std::array kPartFolds{
    Fold{"Gather", fold_gather},
    Fold{"Slice", fold_slice},
    Fold{"Concat", fold_concat},
    Fold{"Expand", fold_expand},
};

}  // namespace

std::span<const Fold> part_folds() { return kPartFolds; }

}  // namespace tide
