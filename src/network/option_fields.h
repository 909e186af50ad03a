// The options of a layer as a table of named fields. Each options struct lists its fields once;
// network files, fingerprints and comparisons walk that list.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

namespace tide {

enum class FieldUse : std::uint8_t {
  required,  // must be in a network file
  written,   // may be left out of one; written always
  optional,  // may be left out of one; written where it is not the default
  made,      // by rewrites of the network: in no file
  derived,   // follows from the rest of the network: in no file and no fingerprint
};

template <typename Options, typename Type>
struct OptionField {
  const char* name;
  Type Options::*member;
  FieldUse use;
};

template <typename Options, typename Type>
[[nodiscard]] constexpr OptionField<Options, Type> field(const char* name, Type Options::*member, FieldUse use) {
  return {name, member, use};
}

// visit(field, value) for each field of `options`, in the order of its table.
template <typename Options, typename Visit>
void for_each_field(Options& options, const Visit& visit) {
  std::apply([&](const auto&... fields) { (visit(fields, options.*(fields.member)), ...); },
             std::remove_const_t<Options>::fields());
}

// Whether all fields are equal.
template <typename Options>
[[nodiscard]] bool equal_fields(const Options& a, const Options& b) {
  return std::apply([&](const auto&... fields) { return ((a.*(fields.member) == b.*(fields.member)) && ...); },
                    Options::fields());
}

}  // namespace tide
