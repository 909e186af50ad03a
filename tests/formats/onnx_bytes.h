// ONNX files byte by byte, as others write them: the fields of its format by their numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tide::test {

inline std::string onnx_number(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7U) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}

inline std::string onnx_field(unsigned number, std::int64_t value) {
  return onnx_number(number << 3U) + onnx_number(static_cast<std::uint64_t>(value));
}

inline std::string onnx_field(unsigned number, const std::string& content) {
  return onnx_number(number << 3U | 2U) + onnx_number(content.size()) + content;
}

template <typename Number>
std::string bytes_of_numbers(const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

inline std::string onnx_entry(const std::string& key, const std::string& value) {
  return onnx_field(1, key) + onnx_field(2, value);
}

// An array with its values left out.
inline std::string onnx_tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims) {
  std::string tensor;
  for (const std::int64_t extent : dims) tensor += onnx_field(1, extent);
  return tensor + onnx_field(2, type) + onnx_field(8, name);
}

// A batch of 3 x 2 x 2 values; -1: not fixed.
inline std::string onnx_input(const std::string& name, const std::vector<std::int64_t>& dims) {
  std::string shape;
  for (const std::int64_t extent : dims)
    shape += onnx_field(1, extent < 0 ? onnx_field(2, std::string("batch")) : onnx_field(1, extent));
  return onnx_field(1, name) + onnx_field(2, onnx_field(1, onnx_field(1, 1) + onnx_field(2, shape)));
}

inline std::string onnx_node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                             const std::string& more = "") {
  std::string node;
  for (const std::string& input : inputs) node += onnx_field(1, input);
  return node + onnx_field(2, output) + onnx_field(3, op + "_node") + onnx_field(4, op) + more;
}

inline std::string onnx_model(const std::string& graph, std::int64_t operators = 20, const std::string& more = "") {
  return onnx_field(1, 8) + onnx_field(7, graph) + onnx_field(8, onnx_field(2, operators)) + more;
}

// relu(x) + array, where the array, of 3 x 1 x 1 floats, is this one.
inline std::string onnx_graph_with(const std::string& array, const std::string& more = "") {
  return onnx_field(1, onnx_node("Relu", {"x"}, "y")) + onnx_field(1, onnx_node("Add", {"y", "array"}, "z")) +
         onnx_field(2, std::string("small")) + onnx_field(5, array) + onnx_field(11, onnx_input("x", {-1, 3, 2, 2})) +
         onnx_field(12, onnx_input("z", {-1, 3, 2, 2})) + more;
}

inline const std::vector<float> kOnnxValues{1.5F, -2, 0.25F};

inline std::string onnx_small(std::int64_t operators = 20) {
  const std::string array = onnx_tensor("array", 1, {3, 1, 1}) + onnx_field(9, bytes_of_numbers(kOnnxValues));
  return onnx_model(onnx_graph_with(array), operators);
}

}  // namespace tide::test
