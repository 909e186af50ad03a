#include "foreign_graph.h"

#include <array>

#include "arrays.h"

namespace tide::python {
namespace {

constexpr std::array<std::pair<std::string_view, ForeignType>, 10> kTypes{{{"float32", ForeignType::f32},
                                                                           {"float64", ForeignType::f64},
                                                                           {"float16", ForeignType::f16},
                                                                           {"bfloat16", ForeignType::bf16},
                                                                           {"int64", ForeignType::i64},
                                                                           {"int32", ForeignType::i32},
                                                                           {"int16", ForeignType::i16},
                                                                           {"int8", ForeignType::i8},
                                                                           {"uint8", ForeignType::u8},
                                                                           {"bool", ForeignType::boolean}}};

ForeignType type_from_name(const std::string& name, const std::string& where) {
  for (const auto& [known, type] : kTypes)
    if (known == name) return type;
  throw Error("{}: there is no type '{}'; types are called as in numpy: float32, int64, bool ...", where, name);
}

std::string type_text(nb::handle value) { return nb::cast<std::string>(nb::str(value.type().attr("__name__"))); }

template <typename Value>
Value cast_as(nb::handle value, const std::string& where, const char* wanted) {
  Value result{};
  if (!nb::try_cast(value, result)) throw Error("{}: is a {}, not {}", where, type_text(value), wanted);
  return result;
}

// One entry of a dictionary: none where it is not there.
nb::object entry(const nb::dict& from, const char* key) { return from.contains(key) ? from[key] : nb::object(); }

std::string text(const nb::dict& from, const char* key, const std::string& where) {
  const nb::object value = entry(from, key);
  if (!value.is_valid() || value.is_none()) return "";
  return cast_as<std::string>(value, fmt::format("{}, '{}'", where, key), "a text");
}

std::vector<nb::object> items(const nb::dict& from, const char* key, const std::string& where) {
  const nb::object value = entry(from, key);
  std::vector<nb::object> result;
  if (!value.is_valid() || value.is_none()) return result;
  if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value))
    throw Error("{}, '{}': is a {}, not a list", where, key, type_text(value));
  for (const nb::handle item : value) result.push_back(nb::borrow(item));
  return result;
}

// An input that is left out is None, or an empty text.
std::vector<std::string> texts(const nb::dict& from, const char* key, const std::string& where) {
  std::vector<std::string> result;
  for (const nb::object& item : items(from, key, where))
    result.push_back(item.is_none() ? "" : cast_as<std::string>(item, fmt::format("{}, '{}'", where, key), "a text"));
  return result;
}

bool is_integer(nb::handle value) { return PyIndex_Check(value.ptr()) != 0 && !nb::hasattr(value, "ndim"); }

// A scalar of numpy as Python's.
nb::object plain(nb::handle value) {
  if (nb::hasattr(value, "ndim") && nb::hasattr(value, "item") && !nb::hasattr(value, "__dlpack__"))
    return value.attr("item")();
  return nb::borrow(value);
}

std::int64_t integer(nb::handle value, const std::string& where) {
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    throw Error("{}: is a {}, not a whole number", where, type_text(value));
  }
  return cast_as<std::int64_t>(index, where, "a whole number of 64 bits");
}

std::int64_t extent(nb::handle value, const std::string& where) {
  // A name, or nothing, stands for what is open.
  if (value.is_none() || nb::isinstance<nb::str>(value)) return -1;
  return integer(value, where);
}

ForeignAttribute list_attribute(nb::handle value, const std::string& where) {
  std::vector<nb::object> all;
  for (const nb::handle item : value) all.push_back(plain(item));
  bool whole = true, words = !all.empty();
  for (const nb::object& item : all) {
    whole = whole && is_integer(item);
    words = words && nb::isinstance<nb::str>(item);
  }
  if (words) {
    std::vector<std::string> result;
    for (const nb::object& item : all) result.push_back(nb::cast<std::string>(item));
    return result;
  }
  if (whole) {
    std::vector<std::int64_t> result;
    for (const nb::object& item : all) result.push_back(integer(item, where));
    return result;
  }
  std::vector<double> result;
  for (const nb::object& item : all) result.push_back(cast_as<double>(item, where, "a number, as the others are"));
  return result;
}

ForeignAttribute attribute(nb::handle given, const std::string& where) {
  const nb::object value = plain(given);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (is_integer(value)) return integer(value, where);
  if (PyFloat_Check(value.ptr()) != 0) return nb::cast<double>(value);
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) return list_attribute(value, where);
  return tensor_of(value, where);
}

ForeignNode node_of(const nb::dict& from, std::size_t number) {
  ForeignNode node;
  std::string where = fmt::format("node {}", number);
  node.op = text(from, "op", where);
  if (node.op.empty()) throw Error("{}: has no 'op'", where);
  where += fmt::format(" ({})", node.op);
  node.domain = text(from, "domain", where);
  node.name = text(from, "name", where);
  node.place = text(from, "place", where);
  node.inputs = texts(from, "inputs", where);
  node.outputs = texts(from, "outputs", where);
  const nb::object attributes = entry(from, "attributes");
  if (!attributes.is_valid() || attributes.is_none()) return node;
  for (const auto& [key, value] : cast_as<nb::dict>(attributes, where + ", 'attributes'", "a dict")) {
    const auto name = cast_as<std::string>(key, where + ", 'attributes'", "a text");
    if (!value.is_none()) node.attributes[name] = attribute(value, fmt::format("{}, attribute '{}'", where, name));
  }
  return node;
}

ForeignInput input_of(const nb::dict& from, std::size_t number) {
  ForeignInput input;
  const std::string where = fmt::format("input {}", number);
  input.name = text(from, "name", where);
  if (const std::string type = text(from, "type", where); !type.empty()) input.type = type_from_name(type, where);
  for (const nb::object& item : items(from, "shape", where)) input.shape.push_back(extent(item, where + ", 'shape'"));
  return input;
}

}  // namespace

ForeignGraph graph_of(const nb::dict& from) {
  ForeignGraph graph;
  const std::string where = "the graph";
  graph.name = text(from, "name", where);
  if (const nb::object opset = entry(from, "opset"); opset.is_valid() && !opset.is_none())
    graph.opset = integer(opset, "the graph, 'opset'");
  for (const nb::object& item : items(from, "inputs", where))
    graph.inputs.push_back(
        input_of(cast_as<nb::dict>(item, "an input of the graph", "a dict"), graph.inputs.size() + 1));
  graph.outputs = texts(from, "outputs", where);
  for (const nb::object& item : items(from, "nodes", where))
    graph.nodes.push_back(node_of(cast_as<nb::dict>(item, "a node of the graph", "a dict"), graph.nodes.size() + 1));
  if (const nb::object constants = entry(from, "constants"); constants.is_valid() && !constants.is_none())
    for (const auto& [key, value] : cast_as<nb::dict>(constants, "the graph, 'constants'", "a dict")) {
      const auto name = cast_as<std::string>(key, "the graph, 'constants'", "a text");
      graph.constants.emplace(name, tensor_of(value, fmt::format("constant '{}'", name)));
    }
  graph.frozen = texts(from, "frozen", where);
  if (const nb::object training = entry(from, "training"); training.is_valid() && !training.is_none())
    graph.training = cast_as<bool>(training, "the graph, 'training'", "True or False");
  return graph;
}

}  // namespace tide::python
