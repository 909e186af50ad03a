// Constant values of a foreign graph: as an array that the user knows by name, perhaps seen with other extents and its
// axes in another order, so that what becomes a parameter still is that array.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foreign/graph.h"

namespace tide {

struct Array {
  std::string name;  // of the graph's constants; empty: made on the way
  ForeignTensor tensor;
  std::vector<std::int64_t> extents;  // of what is seen
  // How it is seen, as in WeightName: both empty where elements lie alike.
  std::vector<std::int64_t> seen_as, axes;
};

[[nodiscard]] std::int64_t element_count(const std::vector<std::int64_t>& extents);
[[nodiscard]] std::size_t type_bytes(ForeignType type);
[[nodiscard]] bool is_floating(ForeignType type);
[[nodiscard]] std::string_view foreign_type_name(ForeignType type);
// By ONNX's number of it; nothing where it is none of these.
[[nodiscard]] std::optional<ForeignType> foreign_type_of(std::int64_t number);

// The array of a constant. Throws an Error where its bytes are not those of its shape.
[[nodiscard]] Array array_of(const std::string& name, const ForeignTensor& tensor);
// An array of doubles that is nobody's.
[[nodiscard]] Array made_array(std::vector<double> values, std::vector<std::int64_t> extents);

// The same elements in row-major order. REQUIRES: as many.
[[nodiscard]] Array reshaped(const Array& array, std::vector<std::int64_t> extents);
// REQUIRES: a permutation of its axes.
[[nodiscard]] Array transposed(const Array& array, const std::vector<std::size_t>& axes);

// Its values in the order in which it is seen.
[[nodiscard]] std::vector<double> doubles_of(const Array& array);

// The decimal number, or 1/n, that somebody wrote where a float stands: 1e-05 for 9.99999975e-06.
[[nodiscard]] double as_written(float value);

}  // namespace tide
