#include "foreign/lowering.h"

#include <algorithm>

namespace tide {
namespace {

// Of arrays that are computed on the way: no larger than what the graph brought, or small.
constexpr std::int64_t kSmallArray = std::int64_t{1} << 14, kSmallArrays = 8;

template <typename Type>
const Type& attribute_as(const NodeContext& node, const char* name, const char* what) {
  const ForeignAttribute& attribute = *node.attribute(name);
  if (const auto* const value = std::get_if<Type>(&attribute)) return *value;
  node.refuse("its attribute '{}' is no {}", name, what);
}

}  // namespace

Lowering::Lowering(const ForeignGraph& of, const ImportOptions& with) : graph(of), options(with), operations(uses) {
  for (const ForeignNode& node : graph.nodes) {
    // What looks at a value's shape or type alone does not read it.
    if (node.op == "Shape" || node.op == "Size") continue;
    for (std::size_t i = 0; i < node.inputs.size() && !(node.op == "CastLike" && i > 0); ++i) ++uses[node.inputs[i]];
  }
  for (const std::string& output : graph.outputs) ++uses[output];
  limit = left = kSmallArray;
  for (const auto& [name, tensor] : graph.constants) {
    const auto elements = static_cast<std::int64_t>(tensor.bytes.size() / type_bytes(tensor.type));
    limit = std::max(limit, elements);
    left = checked_add(left, elements);
  }
  left = checked_multiply(left, kSmallArrays);
}

void Lowering::count(const ForeignNode& node, const Known& result) {
  std::int64_t elements = 2 * std::ssize(result.numbers);
  if (result.array && result.array->name.empty()) elements += element_count(result.array->extents);
  if (elements > left) count(describe(node), elements);
  left -= elements;
}

void Lowering::count(const std::string& where, std::int64_t elements) {
  if (elements > left)
    throw Error("{}: with it, constants that are computed would have more elements than the whole model times {}",
                where, kSmallArrays);
  left -= elements;
}

void Lowering::note(std::string text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(std::move(text));
}

void NodeContext::fail(std::string text) const {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  throw Error("{}: {}", describe(node_), text);
}

const ForeignAttribute* NodeContext::attribute(const char* name) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

std::int64_t NodeContext::integer(const char* name, std::int64_t otherwise) const {
  return has(name) ? attribute_as<std::int64_t>(*this, name, "whole number") : otherwise;
}

double NodeContext::number(const char* name, double otherwise) const {
  if (!has(name)) return otherwise;
  if (const auto* const whole = std::get_if<std::int64_t>(attribute(name))) return static_cast<double>(*whole);
  return attribute_as<double>(*this, name, "number");
}

std::string NodeContext::text(const char* name, const std::string& otherwise) const {
  return has(name) ? attribute_as<std::string>(*this, name, "text") : otherwise;
}

std::vector<std::int64_t> NodeContext::integers(const char* name) const {
  return has(name) ? attribute_as<std::vector<std::int64_t>>(*this, name, "list of whole numbers")
                   : std::vector<std::int64_t>{};
}

const ForeignValue& NodeContext::value(std::size_t i) const {
  static const ForeignValue kAbsent = Absent{};
  if (!has_input(i)) return kAbsent;
  const auto found = lowering_.values.find(node_.inputs[i]);
  if (found == lowering_.values.end())
    refuse("its input '{}' is made by no node before it, and is no constant", node_.inputs[i]);
  if (const auto* const unknown = std::get_if<Unknown>(&found->second)) throw Error(*unknown->problem);
  return found->second;
}

Made NodeContext::made(std::size_t i) const {
  const ForeignValue& input = value(i);
  if (const auto* const made = std::get_if<Made>(&input)) return *made;
  if (std::holds_alternative<Absent>(input)) refuse("its input {} is missing", i + 1);
  if (std::holds_alternative<Known>(input))
    refuse("its input {} is a constant; a layer works on what is computed from the batch", i + 1);
  refuse("its input {} is no value that a layer can work on", i + 1);
}

Array NodeContext::array(std::size_t i, const char* what) const {
  const ForeignValue& input = value(i);
  if (const auto* const constant = std::get_if<Known>(&input))
    if (std::optional<Array> found = as_array(*constant, lowering_.limit)) return std::move(*found);
  refuse("its {} is not a constant but computed; only weights that are arrays of their own can be trained", what);
}

std::optional<std::vector<std::int64_t>> NodeContext::list(const char* name, std::size_t input) const {
  if (has(name)) {
    if (const auto* const one = std::get_if<std::int64_t>(attribute(name))) return std::vector{*one};
    return integers(name);
  }
  if (!has_input(input)) return std::nullopt;
  const Known* const constant = known(input);
  std::optional<std::vector<std::int64_t>> numbers;
  if (constant != nullptr) numbers = whole_numbers(*constant);
  if (!numbers) refuse("its '{}' is computed while it runs; export with fixed shapes behind the batch", name);
  return numbers;
}

std::optional<double> NodeContext::scalar(std::size_t i) const {
  if (!has_input(i)) return std::nullopt;
  const auto* const constant = known(i);
  return constant != nullptr ? one_value(*constant) : std::nullopt;
}

std::int64_t NodeContext::axis(std::int64_t given, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (given < -count || given >= count) refuse("it names axis {} of a value with {} axes", given, rank);
  return given < 0 ? given + count : given;
}

void NodeContext::give(ForeignValue result, std::size_t output) const {
  if (const auto* const known = std::get_if<Known>(&result)) lowering_.count(node_, *known);
  if (output < node_.outputs.size() && !node_.outputs[output].empty())
    lowering_.values[node_.outputs[output]] = std::move(result);
}

}  // namespace tide
