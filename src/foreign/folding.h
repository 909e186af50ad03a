// What the functions that compute with constants (folds/) have in common.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "foreign/lowering.h"

namespace tide {

// More than that many numbers are no shape, and stand in arrays.
inline constexpr std::int64_t kMostFoldedNumbers = 1024;

// The extents of a constant. Throws an Error where they depend on the batch.
[[nodiscard]] std::vector<std::int64_t> need_fixed(const NodeContext& node, const Known& known);
// Throws an Error for more elements than can be computed on the way.
void check_size(const NodeContext& node, const std::vector<std::int64_t>& extents);

// Where each element of a result comes from.
struct Gathered {
  std::vector<std::int64_t> extents;
  std::vector<std::size_t> places;
};
[[nodiscard]] Known pick(const NodeContext& node, const Known& from, const Gathered& gathered);

[[nodiscard]] std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& extents);
// The places first + the sum of i * stride over the axes, for all i below the counts.
[[nodiscard]] std::vector<std::size_t> strided_places(std::int64_t first, const std::vector<std::int64_t>& strides,
                                                      const std::vector<std::int64_t>& counts);
// Which element of a constant stands at each place of a result that it is spread to.
[[nodiscard]] std::vector<std::size_t> spread_places(const std::vector<std::int64_t>& own,
                                                     const std::vector<std::int64_t>& result);
// The extents of what comes of two.
[[nodiscard]] std::vector<Number> broadcast(const NodeContext& node, const std::vector<Number>& a,
                                            const std::vector<Number>& b);

// A function of two constants, element by element: of numbers, which may depend on the batch, or of floats.
using NumberFunction = std::function<std::optional<Number>(const Number&, const Number&)>;
using FloatFunction = std::function<double(double, double)>;
void fold_two(const NodeContext& node, const Known& a, const Known& b, ForeignType type,
              const NumberFunction& of_numbers, const FloatFunction& of_floats);

// By family. The functions are for nodes all of whose inputs are known.
struct Fold {
  std::string_view op;
  void (*compute)(const NodeContext& node);
};
[[nodiscard]] std::span<const Fold> part_folds();
[[nodiscard]] std::span<const Fold> extent_folds();
[[nodiscard]] std::span<const Fold> maker_folds();
// Functions of single elements, of so many constants. False where the node is none.
[[nodiscard]] bool fold_function(const NodeContext& node, std::size_t present);

}  // namespace tide
