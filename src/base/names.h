// Values of enums by the names that people write.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tide {

// The value whose number is that of the name in the list. Throws an Error that lists them where it is none of them.
template <typename Enum>
Enum find_name(std::span<const std::string_view> names, std::string_view name, std::string_view what) {
  std::string known;
  std::size_t number = 0;
  for (const std::string_view each : names) {
    if (each == name) return static_cast<Enum>(number);
    known += fmt::format("{}{}", number == 0 ? "" : number + 1 == names.size() ? " and " : ", ", each);
    ++number;
  }
  throw Error("unknown {} '{}'; there are {}", what, name, known);
}

template <typename Enum>
Enum find_name(std::initializer_list<std::string_view> names, std::string_view name, std::string_view what) {
  return find_name<Enum>(std::span(names.begin(), names.size()), name, what);
}

}  // namespace tide
