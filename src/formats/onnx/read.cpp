// ONNX files to graphs.
#include <algorithm>
#include <array>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "foreign/array.h"
#include "formats/json_fields.h"
#include "formats/onnx/entries.h"
#include "formats/onnx/external_data.h"
#include "formats/onnx/onnx.h"
#include "formats/utf8.h"
#include "onnx.pb.h"

namespace tide {
namespace {

constexpr std::int64_t kLargestFile = std::numeric_limits<std::int32_t>::max();
enum AttributeType : int { kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kFloats = 6, kInts = 7, kStrings = 8 };

using ModelOwner = std::shared_ptr<const onnx::Model>;

class Reader {
 public:
  Reader(ModelOwner model, const std::string& source, const std::filesystem::path& folder)
      : model_(std::move(model)), source_(source), external_(folder, source) {}

  ForeignGraph run() {
    const onnx::Graph& graph = model_->graph();
    if (!model_->has_graph() || (graph.node().empty() && graph.output().empty()))
      throw Error("{} is not an ONNX model: it has no graph", source_);
    ForeignGraph result;
    result.name = text(graph.name());
    result.opset = operator_set();
    result.merged = model_->producer_name() != "tidepool";
    if (!graph.sparse_initializer().empty())
      throw Error("{}: it has sparse weights, which are not read; store them in full", source_);
    for (const onnx::Tensor& tensor : graph.initializer()) {
      const std::string name = text(tensor.name());
      if (name.empty()) throw Error("{}: one of its arrays has no name", source_);
      if (!result.constants.emplace(name, read_tensor(tensor, in_quotes(name))).second)
        throw Error("{}: two arrays are called {}", source_, in_quotes(name));
    }
    for (const onnx::ValueInfo& input : graph.input())
      if (!result.constants.contains(input.name())) result.inputs.push_back(read_input(input));
    for (const onnx::ValueInfo& output : graph.output()) result.outputs.push_back(text(output.name()));
    for (const onnx::Node& node : graph.node()) result.nodes.push_back(read_node(node));
    return result;
  }

 private:
  // A name, which goes into messages and other files.
  const std::string& text(const std::string& bytes) const {
    const bool control = std::any_of(bytes.begin(), bytes.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
    if (control || !is_utf8(bytes)) throw Error("{}: {} is no name; is the file damaged?", source_, in_quotes(bytes));
    return bytes;
  }

  std::int64_t operator_set() const {
    std::int64_t version = 0;
    for (const onnx::OperatorSet& set : model_->opset_import())
      if (set.domain().empty() || set.domain() == "ai.onnx") version = set.version();
    if (version < kOldestOnnxOperators || version > kNewestOnnxOperators)
      throw Error("{}: its operator set is {}; {} to {} are read: export or convert it with one of those", source_,
                  version, kOldestOnnxOperators, kNewestOnnxOperators);
    return version;
  }

  ForeignType read_type(int number, const std::string& what) const {
    if (const auto type = foreign_type_of(number)) return *type;
    throw Error("{}: {} has a type (number {}) that is not read; use float, double, float16, bfloat16 or whole numbers",
                source_, what, number);
  }

  std::int64_t bytes_of_shape(const onnx::Tensor& tensor, ForeignType type, const std::string& what) const {
    std::int64_t bytes = static_cast<std::int64_t>(type_bytes(type));
    for (const std::int64_t extent : tensor.dims())
      if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
        throw Error("{}: array {} has an impossible shape", source_, what);
    return bytes;
  }

  template <typename Field>
  void take(ForeignTensor& tensor, const Field& field) const {
    tensor.bytes = std::as_bytes(std::span(field.data(), static_cast<std::size_t>(field.size())));
    tensor.owner = model_;
  }

  // Numbers of fewer bytes, which stand in 32 bits each.
  template <typename Stored>
  static void narrow(ForeignTensor& tensor, const google::protobuf::RepeatedField<std::int32_t>& field) {
    const auto values = std::make_shared<std::vector<Stored>>();
    for (const std::int32_t value : field) values->push_back(static_cast<Stored>(value));
    tensor.bytes = std::as_bytes(std::span(*values));
    tensor.owner = values;
  }

  void take_typed(ForeignTensor& tensor, const onnx::Tensor& from) const {
    switch (tensor.type) {
      case ForeignType::f32: return take(tensor, from.float_data());
      case ForeignType::f64: return take(tensor, from.double_data());
      case ForeignType::i64: return take(tensor, from.int64_data());
      case ForeignType::i32: return take(tensor, from.int32_data());
      case ForeignType::f16:
      case ForeignType::bf16:
      case ForeignType::i16: return narrow<std::int16_t>(tensor, from.int32_data());
      case ForeignType::i8:
      case ForeignType::u8:
      case ForeignType::boolean: return narrow<std::int8_t>(tensor, from.int32_data());
    }
  }

  static std::int64_t whole_number(const std::string& text, std::int64_t otherwise) {
    if (text.empty()) return otherwise;
    std::int64_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || value > (std::int64_t{1} << 58)) return std::numeric_limits<std::int64_t>::max();
      value = value * 10 + (c - '0');
    }
    return value;
  }

  void take_external(ForeignTensor& tensor, const onnx::Tensor& from) {
    std::map<std::string, std::string> fields;
    for (const onnx::Entry& entry : from.external_data()) fields[entry.key()] = entry.value();
    const ExternalData::Part part =
        external_.part(fields["location"], whole_number(fields["offset"], 0), whole_number(fields["length"], -1));
    tensor.bytes = part.bytes;
    tensor.owner = part.owner;
  }

  ForeignTensor read_tensor(const onnx::Tensor& from, const std::string& what) {
    ForeignTensor tensor;
    tensor.type = read_type(from.data_type(), what);
    tensor.shape.assign(from.dims().begin(), from.dims().end());
    const std::int64_t bytes = bytes_of_shape(from, tensor.type, what);
    if (from.data_location() == 1) {
      take_external(tensor, from);
    } else if (!from.raw_data().empty()) {
      tensor.bytes = std::as_bytes(std::span(from.raw_data()));
      tensor.owner = model_;
    } else {
      take_typed(tensor, from);
    }
    if (static_cast<std::int64_t>(tensor.bytes.size()) != bytes)
      throw Error("{}: array {} has {} bytes, but its shape takes {}", source_, what, tensor.bytes.size(), bytes);
    return tensor;
  }

  ForeignInput read_input(const onnx::ValueInfo& from) const {
    ForeignInput input{.name = text(from.name()), .type = ForeignType::f32, .shape = {}};
    const onnx::TensorType& type = from.type().tensor_type();
    input.type = read_type(type.elem_type(), "input " + in_quotes(from.name()));
    for (const onnx::Dimension& dimension : type.shape().dim())
      input.shape.push_back(dimension.value_case() == onnx::Dimension::kDimValue && dimension.dim_value() > 0
                                ? dimension.dim_value()
                                : -1);
    return input;
  }

  // "model.py:31, in forward" from what exporters say about the call that made a node.
  static std::string read_place(const onnx::Node& node) {
    for (const onnx::Entry& entry : node.metadata_props()) {
      if (entry.key() != "pkg.torch.onnx.stack_trace") continue;
      const std::string& trace = entry.value();
      // The innermost one that is not PyTorch's own.
      std::size_t last = trace.rfind("File \"");
      for (std::size_t at = last; at != std::string::npos;
           at = at > 0 ? trace.rfind("File \"", at - 1) : std::string::npos) {
        const std::string_view path = std::string_view(trace).substr(at, trace.find('"', at + 6) - at);
        if (path.find("/torch/") != std::string_view::npos) continue;
        last = at;
        break;
      }
      if (last == std::string::npos) continue;
      const std::size_t name = last + 6, quote = trace.find('"', name);
      if (quote == std::string::npos) continue;
      const std::string file = std::filesystem::path(trace.substr(name, quote - name)).filename().string();
      const std::size_t line = trace.find("line ", quote), end = trace.find('\n', quote);
      if (line == std::string::npos || (end != std::string::npos && line > end)) return file;
      std::string place = file + ":" + trace.substr(line + 5, end == std::string::npos ? end : end - line - 5);
      if (place.size() > 200) place.resize(200);
      return place;
    }
    return "";
  }

  std::optional<ForeignAttribute> read_attribute(const onnx::Attribute& from, const std::string& where) {
    switch (from.type()) {
      case kFloat: return as_written(from.f());
      case kInt: return from.i();
      case kString: return from.s();
      case kTensor: return read_tensor(from.t(), where);
      case kFloats: {
        std::vector<double> values;
        for (const float value : from.floats()) values.push_back(as_written(value));
        return values;
      }
      case kInts: return std::vector<std::int64_t>(from.ints().begin(), from.ints().end());
      case kStrings: return std::vector<std::string>(from.strings().begin(), from.strings().end());
      default: break;
    }
    // Graphs in nodes, and the like: there is no layer for such nodes.
    return std::nullopt;
  }

  ForeignNode read_node(const onnx::Node& from) {
    ForeignNode node;
    node.op = text(from.op_type());
    node.domain = from.domain() == "ai.onnx" ? "" : text(from.domain());
    node.name = text(from.name());
    for (const std::string& input : from.input()) node.inputs.push_back(text(input));
    for (const std::string& output : from.output()) node.outputs.push_back(text(output));
    node.place = read_place(from);
    for (const onnx::Attribute& attribute : from.attribute())
      if (auto value = read_attribute(attribute, in_quotes(from.name())))
        node.attributes.emplace(text(attribute.name()), std::move(*value));
    return node;
  }

  ModelOwner model_;
  std::string source_;
  ExternalData external_;
};

}  // namespace

bool has_onnx() { return true; }

bool looks_like_onnx(std::span<const std::byte> bytes) {
  // The version of the format is its first field, in files of all known writers; a text never begins so.
  return bytes.size() > 2 && bytes[0] == std::byte{8} && bytes[1] > std::byte{0} && bytes[1] < std::byte{128};
}

ForeignGraph parse_onnx(std::span<const std::byte> bytes, const std::string& source,
                        const std::filesystem::path& folder) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size > kLargestFile)
    throw Error("{} has {} bytes; at most {} are read: export it with its weights in a file beside it", source, size,
                kLargestFile);
  if (const std::int64_t entries = count_onnx_entries(bytes); entries > 1000 + size / 8)
    throw Error("{} is not an ONNX model: it has {} entries in {} bytes", source, entries, size);
  const auto model = std::make_shared<onnx::Model>();
  if (!model->ParseFromArray(bytes.data(), static_cast<int>(size)))
    throw Error("{} is not an ONNX model, or is damaged", source);
  return Reader(model, source, folder).run();
}

ForeignGraph read_onnx(const std::filesystem::path& path) {
  ForeignGraph graph = parse_onnx(read_whole_file(path, kLargestFile), path.string(), path.parent_path());
  // What exporters call every graph says less than the file's name.
  constexpr std::array<std::string_view, 4> kEveryGraph{"", "main_graph", "torch_jit", "torch-jit-export"};
  const std::string stem = path.stem().string();
  if (std::find(kEveryGraph.begin(), kEveryGraph.end(), graph.name) != kEveryGraph.end() && is_utf8(stem))
    graph.name = stem;
  return graph;
}

}  // namespace tide
