#include "formats/network_json.h"

#include <fstream>
#include <limits>
#include <unordered_map>

#include "base/file_text.h"
#include "formats/json_fields.h"

namespace tide {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// --- reading

struct Pair {
  std::int64_t first, second;
};

Pair read_pair(JsonFields& fields, const char* key, Pair otherwise) {
  if (!fields.has(key)) return otherwise;
  const std::vector<std::int64_t> list = fields.integers(key);
  if (list.size() != 2) throw Error("{}: field '{}' must be [height, width]", fields.where(), key);
  return {list[0], list[1]};
}

Window read_window(JsonFields& fields) {
  Window window;
  if (!fields.has("kernel")) throw Error("{}: field 'kernel' is missing; add [height, width]", fields.where());
  const Pair kernel = read_pair(fields, "kernel", {1, 1});
  const Pair stride = read_pair(fields, "stride", {1, 1});
  const Pair dilation = read_pair(fields, "dilation", {1, 1});
  window.kernel_height = kernel.first, window.kernel_width = kernel.second;
  window.stride_height = stride.first, window.stride_width = stride.second;
  window.dilation_height = dilation.first, window.dilation_width = dilation.second;
  if (!fields.has("pad")) return window;
  const std::vector<std::int64_t> pad = fields.integers("pad");
  if (pad.size() != 4) throw Error("{}: field 'pad' must be [top, left, bottom, right]", fields.where());
  window.pad_top = pad[0], window.pad_left = pad[1], window.pad_bottom = pad[2], window.pad_right = pad[3];
  return window;
}

// Replaces the defaults by what the layer's fields say; one overload per kind of options.
struct OptionsReader {
  JsonFields& fields;

  std::int64_t required(const char* key) const {
    if (!fields.has(key)) throw Error("{}: field '{}' is missing; add it", fields.where(), key);
    return fields.integer(key, 0);
  }

  void operator()(NoOptions&) const {}
  void operator()(InputOptions& options) const {
    options.sample = {1, required("channels"), required("height"), required("width")};
  }
  void operator()(ConvolutionOptions& options) const {
    options.channels = required("channels");
    options.window = read_window(fields);
    options.groups = fields.integer("groups", options.groups);
    options.bias = fields.boolean("bias", options.bias);
  }
  void operator()(FullyConnectedOptions& options) const {
    options.channels = required("channels");
    options.bias = fields.boolean("bias", options.bias);
  }
  void operator()(PoolOptions& options) const {
    options.window = read_window(fields);
    options.round_up = fields.boolean("round_up", options.round_up);
    options.count_padding = fields.boolean("count_padding", options.count_padding);
  }
  void operator()(SoftmaxOptions& options) const {
    options.label_smoothing = fields.number("label_smoothing", options.label_smoothing);
    options.weight = fields.number("weight", options.weight);
    options.label_offset = fields.integer("label_offset", options.label_offset);
  }
  void operator()(LrnOptions& options) const {
    options.size = fields.integer("size", options.size);
    options.alpha = fields.number("alpha", options.alpha);
    options.beta = fields.number("beta", options.beta);
    options.k = fields.number("k", options.k);
  }
  void operator()(BatchNormOptions& options) const {
    options.epsilon = fields.number("epsilon", options.epsilon);
    options.momentum = fields.number("momentum", options.momentum);
  }
  void operator()(DropoutOptions& options) const { options.rate = fields.number("rate", options.rate); }
  void operator()(SplitOptions& options) const { options.channels = fields.integers("channels"); }
  void operator()(ForkOptions& options) const { options.branches = required("branches"); }
};

std::string all_kinds() {
  std::string text;
  for (int kind = 0; kind < kLayerKinds; ++kind)
    text += fmt::format("{}{}", kind == 0 ? "" : ", ", kind_name(static_cast<LayerKind>(kind)));
  return text;
}

LayerSpec read_layer(const json& object, std::size_t number, const std::string& source) {
  JsonFields fields(object, fmt::format("{}, layer {}", source, number));
  LayerSpec spec;
  spec.name = fields.text("name");
  if (spec.name.empty()) throw Error("{}: it has no name; add the field 'name'", fields.where());
  fields.set_where(fmt::format("{}, layer {}", source, in_quotes(spec.name)));
  const std::string kind = fields.text("kind");
  const std::optional<LayerKind> known = kind_from_name(kind);
  if (!known)
    throw Error("{}: there is no kind of layer {}; the kinds are {}", fields.where(), in_quotes(kind), all_kinds());
  spec.kind = *known;
  spec.inputs = fields.texts("inputs");
  spec.share = fields.text("share");
  spec.frozen = fields.boolean("frozen", false);
  const std::int64_t mirror = fields.integer("mirror", 0);
  if (mirror < 0 || mirror > std::numeric_limits<int>::max())
    throw Error("{}: field 'mirror' must be between 0 and 2^31 - 1", fields.where());
  spec.mirror = static_cast<int>(mirror);
  spec.options = default_options(spec.kind);
  std::visit(OptionsReader{fields}, spec.options);
  fields.finish();
  return spec;
}

// --- writing

void write_window(ordered_json& object, const Window& w) {
  object["kernel"] = {w.kernel_height, w.kernel_width};
  if (w.stride_height != 1 || w.stride_width != 1) object["stride"] = {w.stride_height, w.stride_width};
  if (w.dilation_height != 1 || w.dilation_width != 1) object["dilation"] = {w.dilation_height, w.dilation_width};
  if (w.pad_top != 0 || w.pad_left != 0 || w.pad_bottom != 0 || w.pad_right != 0)
    object["pad"] = {w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
}

struct OptionsWriter {
  ordered_json& object;

  void operator()(const NoOptions&) const {}
  void operator()(const InputOptions& options) const {
    object["channels"] = options.sample.channels();
    object["height"] = options.sample.height();
    object["width"] = options.sample.width();
  }
  void operator()(const ConvolutionOptions& options) const {
    object["channels"] = options.channels;
    write_window(object, options.window);
    if (options.groups != 1) object["groups"] = options.groups;
    if (!options.bias) object["bias"] = false;
  }
  void operator()(const FullyConnectedOptions& options) const {
    object["channels"] = options.channels;
    if (!options.bias) object["bias"] = false;
  }
  void operator()(const PoolOptions& options) const {
    write_window(object, options.window);
    if (options.round_up) object["round_up"] = true;
    if (options.count_padding) object["count_padding"] = true;
  }
  void operator()(const SoftmaxOptions& options) const {
    object["label_smoothing"] = options.label_smoothing;
    object["weight"] = options.weight;
    object["label_offset"] = options.label_offset;
  }
  void operator()(const LrnOptions& options) const {
    object["size"] = options.size;
    object["alpha"] = options.alpha;
    object["beta"] = options.beta;
    object["k"] = options.k;
  }
  void operator()(const BatchNormOptions& options) const {
    object["epsilon"] = options.epsilon;
    object["momentum"] = options.momentum;
  }
  void operator()(const DropoutOptions& options) const { object["rate"] = options.rate; }
  void operator()(const SplitOptions& options) const { object["channels"] = options.channels; }
  void operator()(const ForkOptions& options) const { object["branches"] = options.branches; }
};

std::string value_name(const Network& network, Value value) {
  const Layer& layer = network.layer(value.layer);
  return value.output == 0 ? layer.name : fmt::format("{}:{}", layer.name, value.output);
}

ordered_json write_layer(const Network& network, const Layer& layer, const std::string& share) {
  ordered_json object;
  object["kind"] = kind_name(layer.kind);
  object["name"] = layer.name;
  for (const Value& input : layer.inputs) object["inputs"].push_back(value_name(network, input));
  std::visit(OptionsWriter{object}, layer.options);
  if (!share.empty()) object["share"] = share;
  if (layer.frozen) object["frozen"] = true;
  if (layer.mirror != 0) object["mirror"] = layer.mirror;
  return object;
}

}  // namespace

Network parse_network(std::string_view text, const std::string& source) {
  const json root = parse_json(text, source);
  JsonFields fields(root, source);
  std::string name = fields.text("name");
  const json* layers = fields.array("layers");
  if (layers == nullptr) throw Error("{}: field 'layers' is missing; this is not a network", source);
  fields.finish();
  std::vector<LayerSpec> specs;
  specs.reserve(layers->size());
  for (const json& layer : *layers) specs.push_back(read_layer(layer, specs.size() + 1, source));
  try {
    return assemble(std::move(name), std::move(specs));
  } catch (const Error& error) {
    throw Error("{}: {}", source, error.what());
  }
}

Network read_network(const std::filesystem::path& path) {
  return parse_network(read_text(path, Bytes(kLargestNetworkFile), "a network file"), path.string());
}

// One layer per line, so that people can read it and tools can compare it.
std::string format_network(const Network& network) try {
  std::unordered_map<ParameterId, const Layer*> owners;
  std::string text = fmt::format("{{\"name\": {}, \"layers\": [\n", ordered_json(network.name).dump());
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    std::string share;
    if (!layer.parameters.empty()) {
      const auto [owner, is_new] = owners.emplace(layer.parameters[0], &layer);
      if (!is_new) share = owner->second->name;
    }
    text += write_layer(network, layer, share).dump();
    text += i + 1 < network.layers.size() ? ",\n" : "\n";
  }
  return text + "]}\n";
} catch (const json::exception&) {
  throw Error("network '{}' has a name that is not UTF-8; rename it", network.name);
}

void write_network(const Network& network, const std::filesystem::path& path) {
  const std::string text = format_network(network);
  // Under another name first, so that a full disk leaves no half file.
  std::filesystem::path partial = path;
  partial += ".partial";
  std::ofstream file(partial, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (!file) {
    std::filesystem::remove(partial, error);
    throw Error("{}: cannot be written; check the folder and the free space", path.string());
  }
  std::filesystem::rename(partial, path, error);
  if (error) throw Error("{}: cannot be written: {}", path.string(), error.message());
}

}  // namespace tide
