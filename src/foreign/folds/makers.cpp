// Constants that are made of shapes.
#include <array>

#include "foreign/folding.h"

namespace tide {
namespace {

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

bool counts_samples(const NodeContext& node) {
  constexpr std::array kEnds{Number{0}, kBatch, Number{1}};
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    const Known* const known = node.known(i);
    const auto numbers = known != nullptr ? numbers_of(*known) : std::nullopt;
    if (!numbers || numbers->size() != 1 || !(numbers->front() == kEnds[i])) return false;
  }
  return true;
}

void fold_range(const NodeContext& node) {
  if (counts_samples(node)) return node.give(SampleNumbers{});
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
    if (static_cast<std::int64_t>(numbers.size()) >= kMostFoldedNumbers)
      node.refuse("it has more than {} numbers", kMostFoldedNumbers);
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

constexpr std::array kMakerFolds{
    Fold{"ConstantOfShape", fold_constant_of_shape},
    Fold{"Range", fold_range},
    Fold{"ReduceProd", fold_product},
};

}  // namespace

std::span<const Fold> maker_folds() { return kMakerFolds; }

}  // namespace tide
