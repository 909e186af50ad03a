// Tables of plan files: the names of the columns once, then rows of plain values. Enums are written by name.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tide {

[[nodiscard]] inline nlohmann::json json_table(std::initializer_list<const char*> columns) {
  return {{"columns", std::vector<std::string>(columns.begin(), columns.end())}, {"rows", nlohmann::json::array()}};
}

[[nodiscard]] inline const nlohmann::json& json_rows(const nlohmann::json& object, const char* name) {
  return object.at(name).at("rows");
}

// The value of an enum with `count` values, counted from 0, by the name that `name_of` gives it.
template <typename Enum, typename NameOf>
Enum enum_from_json(const nlohmann::json& value, NameOf&& name_of, std::size_t count) {
  if (!value.is_string()) throw Error("{} is not a name", value.dump());
  const auto& text = value.get_ref<const std::string&>();
  for (std::size_t i = 0; i < count; ++i)
    if (name_of(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  throw Error("{} is not known here", value.dump());  // as JSON writes it, in one line
}

// One row of a table, read column by column with every number checked.
class JsonRow {
 public:
  explicit JsonRow(const nlohmann::json& row) : row_(row) {
    if (!row.is_array()) throw Error("a table row is not a list");
  }
  std::int64_t number(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                      std::int64_t high = std::numeric_limits<std::int64_t>::max()) {
    const nlohmann::json& value = next();
    if (!value.is_number_integer()) throw Error("{} is not a whole number", value.dump());
    const auto result = value.get<std::int64_t>();
    if (result < low || result > high) throw Error("{} is outside {}..{}", result, low, high);
    return result;
  }
  template <typename Enum, typename NameOf>
  Enum named(NameOf&& name_of, std::size_t count) {
    return enum_from_json<Enum>(next(), name_of, count);
  }
  template <typename AnyId>
  AnyId id() {
    const std::int64_t value = number(-1, std::numeric_limits<std::int32_t>::max());
    return value < 0 ? AnyId() : AnyId(static_cast<std::size_t>(value));
  }
  std::int32_t int32(std::int32_t low = std::numeric_limits<std::int32_t>::min()) {
    return static_cast<std::int32_t>(number(low, std::numeric_limits<std::int32_t>::max()));
  }
  std::uint32_t uint32() { return static_cast<std::uint32_t>(number(0, std::numeric_limits<std::uint32_t>::max())); }
  std::int16_t int16() { return static_cast<std::int16_t>(number(-32768, 32767)); }
  const nlohmann::json& next() {
    if (column_ >= row_.size()) throw Error("a table row ends early");
    return row_[column_++];
  }

 private:
  const nlohmann::json& row_;
  std::size_t column_ = 0;
};

}  // namespace tide
