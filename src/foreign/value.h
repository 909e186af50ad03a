// What a name of a foreign graph stands for while the graph becomes layers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "foreign/array.h"
#include "foreign/number.h"

namespace tide {

// Values that no layer makes. Of a shape: what is small and whole stands in `numbers`.
struct Known {
  ForeignType type = ForeignType::f32;
  std::vector<Number> extents;
  std::vector<Number> numbers;  // of integers and truth values; row-major, or one for all (`same`)
  std::optional<Array> array;   // of floats
  std::optional<double> fill;   // floats that are all equal
  bool same = false;            // of numbers: one for all
};

// An output of an operation (operations.h).
struct Made {
  std::size_t operation = 0;
  std::size_t output = 0;
  friend bool operator==(const Made&, const Made&) = default;
};

// Numbers that are 1 with probability `keep`, or 0, times `factor`; before they were compared, uniform ones.
struct Mask {
  std::vector<Number> extents;
  bool compared = false;
  double low = 0, high = 1;
  double keep = 1, factor = 1;
};

// The numbers of all samples, 0 to the batch less one: in a row, or each in a row of its own.
struct SampleNumbers {
  bool column = false;
};

struct Sequence {
  std::vector<Made> values;
};

// What there is no layer for. It only matters where a layer needs it.
struct Unknown {
  std::shared_ptr<const std::string> problem;  // a whole message
};

struct Absent {};

using ForeignValue = std::variant<Absent, Known, Made, Mask, SampleNumbers, Sequence, Unknown>;

[[nodiscard]] Known known_array(Array array);
[[nodiscard]] Known known_numbers(std::vector<Number> numbers, std::vector<std::int64_t> extents,
                                  ForeignType type = ForeignType::i64);
[[nodiscard]] Known known_fill(double value, std::vector<Number> extents, ForeignType type = ForeignType::f32);

// Its extents, where none depends on the batch.
[[nodiscard]] std::optional<std::vector<std::int64_t>> fixed_extents(const Known& known);
// The one number that all of it is.
[[nodiscard]] std::optional<double> one_value(const Known& known);
// All of it as fixed whole numbers, or as numbers that may depend on the batch.
[[nodiscard]] std::optional<std::vector<std::int64_t>> whole_numbers(const Known& known);
[[nodiscard]] std::optional<std::vector<Number>> numbers_of(const Known& known);
// As floats: nothing where that would depend on the batch, or be larger than `limit` elements.
[[nodiscard]] std::optional<Array> as_array(const Known& known, std::int64_t limit);

}  // namespace tide
