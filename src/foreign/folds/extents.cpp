// The same constants with other extents, or with their axes in another order.
#include <algorithm>
#include <array>
#include <numeric>

#include "foreign/folding.h"

namespace tide {
namespace {

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

constexpr std::array kExtentFolds{
    Fold{"Reshape", fold_reshape},     Fold{"Flatten", fold_flatten},     Fold{"Squeeze", fold_squeeze},
    Fold{"Unsqueeze", fold_unsqueeze}, Fold{"Transpose", fold_transpose},
};

}  // namespace

std::span<const Fold> extent_folds() { return kExtentFolds; }

}  // namespace tide
