#include "foreign/array.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>

#include "base/checked.h"
#include "foreign/lower.h"
#include "network/reordered.h"

namespace tide {
namespace {

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits} >> 15U << 31U, exponent = bits >> 10U & 31U, fraction = bits & 1023U;
  std::uint32_t result = 0;
  if (exponent == 31) {
    result = sign | 0x7f800000U | fraction << 13U;
  } else if (exponent > 0) {
    result = sign | (exponent + 112) << 23U | fraction << 13U;
  } else {
    const float small = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -small : small;
  }
  float value = 0;
  std::memcpy(&value, &result, sizeof value);
  return value;
}

float brain_to_float(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16U;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

template <typename Stored>
Stored stored_at(std::span<const std::byte> bytes, std::size_t index) {
  Stored value{};
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

double element_at(ForeignType type, std::span<const std::byte> bytes, std::size_t i) {
  switch (type) {
    case ForeignType::f32: return static_cast<double>(stored_at<float>(bytes, i));
    case ForeignType::f64: return stored_at<double>(bytes, i);
    case ForeignType::f16: return static_cast<double>(half_to_float(stored_at<std::uint16_t>(bytes, i)));
    case ForeignType::bf16: return static_cast<double>(brain_to_float(stored_at<std::uint16_t>(bytes, i)));
    case ForeignType::i64: return static_cast<double>(stored_at<std::int64_t>(bytes, i));
    case ForeignType::i32: return stored_at<std::int32_t>(bytes, i);
    case ForeignType::i16: return stored_at<std::int16_t>(bytes, i);
    case ForeignType::i8: return stored_at<std::int8_t>(bytes, i);
    case ForeignType::u8: return stored_at<std::uint8_t>(bytes, i);
    case ForeignType::boolean: return stored_at<std::uint8_t>(bytes, i) != 0 ? 1 : 0;
  }
  return 0;
}

// Throws unless the tensor has the bytes that its shape says.
std::size_t checked_count(const std::string& name, const ForeignTensor& tensor) {
  for (const std::int64_t extent : tensor.shape)
    if (extent < 0) throw Error("array '{}' has a negative extent", name);
  const std::int64_t count = element_count(tensor.shape);
  if (checked_multiply(count, static_cast<std::int64_t>(type_bytes(tensor.type))) !=
      static_cast<std::int64_t>(tensor.bytes.size()))
    throw Error("array '{}' has {} bytes, which are not those of its shape", name, tensor.bytes.size());
  return static_cast<std::size_t>(count);
}

}  // namespace

std::int64_t element_count(const std::vector<std::int64_t>& extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count = checked_multiply(count, extent);
  return count;
}

std::size_t type_bytes(ForeignType type) {
  switch (type) {
    case ForeignType::f64:
    case ForeignType::i64: return 8;
    case ForeignType::f32:
    case ForeignType::i32: return 4;
    case ForeignType::f16:
    case ForeignType::bf16:
    case ForeignType::i16: return 2;
    case ForeignType::i8:
    case ForeignType::u8:
    case ForeignType::boolean: break;
  }
  return 1;
}

bool is_floating(ForeignType type) {
  return type == ForeignType::f32 || type == ForeignType::f64 || type == ForeignType::f16 || type == ForeignType::bf16;
}

std::string_view foreign_type_name(ForeignType type) {
  static constexpr std::string_view kNames[] = {"float", "double", "float16", "bfloat16", "int64",
                                                "int32", "int16",  "int8",    "uint8",    "bool"};
  return kNames[static_cast<std::size_t>(type)];
}

std::optional<ForeignType> foreign_type_of(std::int64_t number) {
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
    default: return std::nullopt;
  }
}

Array array_of(const std::string& name, const ForeignTensor& tensor) {
  static_cast<void>(checked_count(name, tensor));
  return {name, tensor, tensor.shape, {}, {}};
}

Array made_array(std::vector<double> values, std::vector<std::int64_t> extents) {
  const auto owner = std::make_shared<const std::vector<double>>(std::move(values));
  ForeignTensor tensor{ForeignType::f64, extents, std::as_bytes(std::span(*owner)), owner};
  return {"", std::move(tensor), std::move(extents), {}, {}};
}

Array reshaped(const Array& array, std::vector<std::int64_t> extents) {
  if (array.axes.empty()) {
    Array result = array;
    result.extents = std::move(extents);
    return result;
  }
  // A reordered array keeps its order where only extents of 1 come and go.
  const auto without_ones = [](std::vector<std::int64_t> list) {
    std::erase(list, 1);
    return list;
  };
  if (without_ones(array.extents) == without_ones(extents)) {
    Array result = array;
    result.extents = std::move(extents);
    return result;
  }
  return made_array(doubles_of(array), std::move(extents));
}

Array transposed(const Array& array, const std::vector<std::size_t>& axes) {
  // Extents of 1 do not matter; what is seen now, axis by axis, as axes of the array.
  std::vector<std::int64_t> seen_as = array.axes.empty() ? array.extents : array.seen_as;
  std::vector<std::int64_t> order = array.axes;
  if (array.axes.empty()) {
    order.resize(seen_as.size());
    std::iota(order.begin(), order.end(), 0);
  }
  if (order.size() != array.extents.size()) {
    // Its extents came to differ from the axes by ones: begin again with values.
    Array made = made_array(doubles_of(array), array.extents);
    return transposed(made, axes);
  }
  Array result = array;
  std::vector<std::int64_t> moved;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    moved.push_back(order[axes[i]]);
    result.extents[i] = array.extents[axes[i]];
  }
  // Without extents of 1, which may stand anywhere.
  std::vector<std::int64_t> kept;
  for (const std::int64_t axis : moved)
    if (seen_as[static_cast<std::size_t>(axis)] != 1) kept.push_back(axis);
  result.seen_as = seen_as;
  result.axes = moved;
  if (std::is_sorted(kept.begin(), kept.end())) result.seen_as.clear(), result.axes.clear();
  return result;
}

std::vector<double> doubles_of(const ForeignTensor& tensor) {
  std::vector<double> values(checked_count("", tensor));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element_at(tensor.type, tensor.bytes, i);
  return values;
}

std::vector<float> values_of(const ForeignTensor& tensor) {
  std::vector<float> values(checked_count("", tensor));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(element_at(tensor.type, tensor.bytes, i));
  return values;
}

std::vector<double> doubles_of(const Array& array) {
  std::vector<double> values = doubles_of(array.tensor);
  if (array.axes.empty()) return values;
  return to_parameter_order({.parameter = "", .array = array.name, .seen_as = array.seen_as, .axes = array.axes},
                            std::span<const double>(values));
}

double as_written(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double written = static_cast<double>(value);
  if (error != std::errc()) return written;
  const auto digits = std::count_if(text, end, [](char c) { return c >= '0' && c <= '9'; });
  if (digits > 7)
    for (int n = 3; n <= 64; ++n)
      for (const double fraction : {1.0 / n, -1.0 / n})
        if (static_cast<float>(fraction) == value) return fraction;
  std::from_chars(text, end, written);
  return written;
}

}  // namespace tide
