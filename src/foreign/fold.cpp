// Nodes all of whose inputs are known, and what computing with constants takes.
#include "foreign/fold.h"

#include <algorithm>

#include "foreign/folding.h"

namespace tide {

std::vector<std::int64_t> need_fixed(const NodeContext& node, const Known& known) {
  auto extents = fixed_extents(known);
  if (!extents) node.refuse("its constant's extents depend on the batch, and it would have to be known");
  return std::move(*extents);
}

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
    if (static_cast<std::int64_t>(picked.size()) > kMostFoldedNumbers)
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

std::vector<std::size_t> spread_places(const std::vector<std::int64_t>& own, const std::vector<std::int64_t>& result) {
  const std::vector<std::int64_t> row_major = row_major_strides(own);
  std::vector<std::int64_t> strides(result.size(), 0);
  for (std::size_t i = 0; i < own.size(); ++i)
    if (own[i] != 1) strides[result.size() - own.size() + i] = row_major[i];
  return strided_places(0, strides, result);
}

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
  for (const auto family : {part_folds(), extent_folds(), maker_folds()})
    for (const Fold& candidate : family)
      if (candidate.op == node.node().op) {
        candidate.compute(node);
        return true;
      }
  return fold_function(node, present);
}

}  // namespace tide
