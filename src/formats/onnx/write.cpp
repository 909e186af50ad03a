// Graphs to ONNX files.
#include <limits>

#include "base/checked.h"
#include "base/new_file.h"
#include "foreign/array.h"
#include "formats/onnx/onnx.h"
#include "formats/utf8.h"
#include "onnx.pb.h"

namespace tide {
namespace {

constexpr std::int64_t kFormatVersion = 8;  // the oldest that knows all that is written

int type_number(ForeignType type) {
  switch (type) {
    case ForeignType::f32: return 1;
    case ForeignType::u8: return 2;
    case ForeignType::i8: return 3;
    case ForeignType::i16: return 5;
    case ForeignType::i32: return 6;
    case ForeignType::i64: return 7;
    case ForeignType::boolean: return 9;
    case ForeignType::f16: return 10;
    case ForeignType::f64: return 11;
    case ForeignType::bf16: return 16;
  }
  return 0;
}

void write_tensor(const ForeignTensor& from, onnx::Tensor& to) {
  for (const std::int64_t extent : from.shape) to.add_dims(extent);
  to.set_data_type(type_number(from.type));
  to.set_raw_data(from.bytes.data(), from.bytes.size());
}

struct AttributeWriter {
  onnx::Attribute& to;

  void operator()(std::int64_t value) const { to.set_type(2), to.set_i(value); }
  void operator()(double value) const { to.set_type(1), to.set_f(static_cast<float>(value)); }
  void operator()(const std::string& value) const { to.set_type(3), to.set_s(value); }
  void operator()(const std::vector<std::int64_t>& values) const {
    to.set_type(7);
    for (const std::int64_t value : values) to.add_ints(value);
  }
  void operator()(const std::vector<double>& values) const {
    to.set_type(6);
    for (const double value : values) to.add_floats(static_cast<float>(value));
  }
  void operator()(const std::vector<std::string>& values) const {
    to.set_type(8);
    for (const std::string& value : values) to.add_strings(value);
  }
  void operator()(const ForeignTensor& value) const {
    to.set_type(4);
    write_tensor(value, *to.mutable_t());
  }
};

const std::string& checked_name(const std::string& name, const std::string& file) {
  if (!is_utf8(name)) throw Error("{} cannot be written: a name in it is not UTF-8", file);
  return name;
}

void write_node(const ForeignNode& from, onnx::Node& to, const std::string& file) {
  to.set_op_type(from.op);
  to.set_domain(from.domain);
  to.set_name(checked_name(from.name, file));
  for (const std::string& input : from.inputs) to.add_input(checked_name(input, file));
  for (const std::string& output : from.outputs) to.add_output(checked_name(output, file));
  for (const auto& [name, value] : from.attributes) {
    onnx::Attribute& attribute = *to.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
}

void write_type(ForeignType from, const std::vector<std::int64_t>& shape, onnx::TensorType& to) {
  to.set_elem_type(type_number(from));
  for (const std::int64_t extent : shape) {
    onnx::Dimension& dimension = *to.mutable_shape()->add_dim();
    if (extent < 0)
      dimension.set_dim_param("batch");
    else
      dimension.set_dim_value(extent);
  }
}

onnx::Model model_of(const ForeignGraph& graph, const std::string& file) {
  onnx::Model model;
  model.set_ir_version(kFormatVersion);
  model.set_producer_name("tidepool");
  onnx::OperatorSet& operators = *model.add_opset_import();
  operators.set_version(graph.opset);
  onnx::Graph& to = *model.mutable_graph();
  to.set_name(graph.name.empty() ? "model" : checked_name(graph.name, file));
  bool own_words = false;
  for (const ForeignNode& node : graph.nodes) {
    own_words = own_words || node.domain == "tidepool";
    write_node(node, *to.add_node(), file);
  }
  if (own_words) {
    onnx::OperatorSet& own = *model.add_opset_import();
    own.set_domain("tidepool");
    own.set_version(1);
  }
  for (const ForeignInput& input : graph.inputs) {
    onnx::ValueInfo& value = *to.add_input();
    value.set_name(checked_name(input.name, file));
    write_type(input.type, input.shape, *value.mutable_type()->mutable_tensor_type());
  }
  for (const std::string& output : graph.outputs) {
    onnx::ValueInfo& value = *to.add_output();
    value.set_name(output);
    onnx::TensorType& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(type_number(ForeignType::f32));
    if (const auto shape = graph.output_shapes.find(output); shape != graph.output_shapes.end())
      write_type(ForeignType::f32, shape->second, type);
  }
  for (const auto& [name, tensor] : graph.constants) {
    onnx::Tensor& array = *to.add_initializer();
    array.set_name(checked_name(name, file));
    write_tensor(tensor, array);
  }
  if (model.ByteSizeLong() > std::numeric_limits<std::int32_t>::max())
    throw Error("{} cannot be written: a file of this kind has less than 2 GiB", file);
  return model;
}

}  // namespace

void write_onnx(const ForeignGraph& graph, const std::filesystem::path& path) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : graph.constants)
    bytes = checked_add(bytes, static_cast<std::int64_t>(tensor.bytes.size()));
  if (bytes > std::numeric_limits<std::int32_t>::max())
    throw Error("{} cannot be written: a file of this kind has less than 2 GiB", path.string());
  const onnx::Model model = model_of(graph, path.string());
  std::string text;
  if (!model.SerializeToString(&text)) throw Error("{} cannot be written", path.string());
  NewFile file(path);
  file.stream().write(text.data(), static_cast<std::streamsize>(text.size()));
  file.finish();
}

}  // namespace tide
