#include "foreign/value.h"

#include "base/checked.h"

namespace tide {
namespace {

std::vector<Number> fixed_numbers(const std::vector<std::int64_t>& list) {
  std::vector<Number> numbers;
  for (const std::int64_t item : list) numbers.push_back({item});
  return numbers;
}

// More numbers than a shape or a list of indices has are an array.
constexpr std::int64_t kMostNumbers = 1024;

}  // namespace

Known known_array(Array array) {
  Known known;
  known.type = array.tensor.type;
  known.extents = fixed_numbers(array.extents);
  const std::int64_t count = element_count(array.extents);
  if (is_floating(known.type)) {
    if (count == 1 && array.name.empty()) {
      const double value = doubles_of(array)[0];
      known.fill = known.type == ForeignType::f32 ? as_written(static_cast<float>(value)) : value;
      return known;
    }
  } else if (count <= kMostNumbers && array.axes.empty()) {
    for (const double value : doubles_of(array)) known.numbers.push_back({static_cast<std::int64_t>(value)});
    if (known.type == ForeignType::i64)  // which need not fit into doubles
      for (std::size_t i = 0; i < known.numbers.size(); ++i)
        std::copy_n(array.tensor.bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(std::int64_t)),
                    sizeof(std::int64_t), reinterpret_cast<std::byte*>(&known.numbers[i].constant));
    return known;
  }
  known.array = std::move(array);
  return known;
}

Known known_numbers(std::vector<Number> numbers, std::vector<std::int64_t> extents, ForeignType type) {
  Known known;
  known.type = type;
  known.extents = fixed_numbers(extents);
  known.numbers = std::move(numbers);
  return known;
}

Known known_fill(double value, std::vector<Number> extents, ForeignType type) {
  Known known;
  known.type = type;
  known.extents = std::move(extents);
  if (is_floating(type)) {
    known.fill = value;
  } else {
    known.numbers = {{static_cast<std::int64_t>(value)}};
    known.same = true;
  }
  return known;
}

std::optional<std::vector<std::int64_t>> fixed_extents(const Known& known) {
  std::vector<std::int64_t> extents;
  for (const Number& extent : known.extents) {
    if (!extent.is_fixed()) return std::nullopt;
    extents.push_back(extent.constant);
  }
  return extents;
}

std::optional<double> one_value(const Known& known) {
  if (known.fill) return known.fill;
  if (known.array && is_floating(known.type)) {
    if (element_count(known.array->extents) != 1) return std::nullopt;
    const double value = doubles_of(*known.array)[0];
    return known.type == ForeignType::f32 ? as_written(static_cast<float>(value)) : value;
  }
  if (known.numbers.empty() || (known.numbers.size() > 1 && !known.same)) return std::nullopt;
  if (!known.numbers[0].is_fixed()) return std::nullopt;
  return static_cast<double>(known.numbers[0].constant);
}

std::optional<std::vector<Number>> numbers_of(const Known& known) {
  if (is_floating(known.type) || known.array) return std::nullopt;
  if (!known.same) return known.numbers;
  const auto extents = fixed_extents(known);
  if (!extents) return std::nullopt;
  const std::int64_t count = element_count(*extents);
  if (count > kMostNumbers) return std::nullopt;
  return std::vector<Number>(static_cast<std::size_t>(count), known.numbers.at(0));
}

std::optional<std::vector<std::int64_t>> whole_numbers(const Known& known) {
  const auto numbers = numbers_of(known);
  if (!numbers) return std::nullopt;
  std::vector<std::int64_t> list;
  for (const Number& number : *numbers) {
    if (!number.is_fixed()) return std::nullopt;
    list.push_back(number.constant);
  }
  return list;
}

std::optional<Array> as_array(const Known& known, std::int64_t limit) {
  const auto extents = fixed_extents(known);
  if (!extents) return std::nullopt;
  if (known.array) return known.array;
  const std::int64_t count = element_count(*extents);
  if (count > limit) return std::nullopt;
  if (known.fill) return made_array(std::vector<double>(static_cast<std::size_t>(count), *known.fill), *extents);
  const auto list = whole_numbers(known);
  if (!list) return std::nullopt;
  return made_array(std::vector<double>(list->begin(), list->end()), *extents);
}

}  // namespace tide
