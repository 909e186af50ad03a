#include "formats/network_json.h"

#include <limits>
#include <unordered_map>

#include "base/file_text.h"
#include "base/names.h"
#include "base/new_file.h"
#include "formats/json_fields.h"
#include "network/kind.h"

namespace tide {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// --- reading

// Replaces the defaults by what the layer's fields say: one overload per type of field.
class OptionsReader {
 public:
  explicit OptionsReader(JsonFields& fields) : fields_(fields) {}

  template <typename Options>
  void operator()(Options& options) const {
    for_each_field(options, [&](const auto& field, auto& value) {
      if (field.use != FieldUse::made && field.use != FieldUse::derived)
        read(field.name, field.use == FieldUse::required, value);
    });
  }
  // What a function's numbers are where the file does not say, depends on the function.
  void operator()(ActivationOptions& options) const {
    read("function", true, options.function);
    options = ActivationOptions::of(options.function);
    read("alpha", false, options.alpha);
    read("beta", false, options.beta);
  }

 private:
  void read(const char* key, bool required, std::int64_t& value) const {
    if (required) require(key, "it");
    value = fields_.integer(key, value);
  }
  void read(const char* key, bool required, double& value) const {
    if (required) require(key, "it");
    value = fields_.number(key, value);
  }
  void read(const char* key, bool required, bool& value) const {
    if (required) require(key, "it");
    value = fields_.boolean(key, value);
  }
  void read(const char* key, bool required, std::vector<std::int64_t>& value) const {
    if (required) require(key, "it");
    if (fields_.has(key)) value = fields_.integers(key);
  }
  template <NamedEnum Enum>
  void read(const char* key, bool required, Enum& value) const {
    if (required) require(key, "it");
    if (!fields_.has(key)) return;
    try {
      value = find_name<Enum>(std::span(EnumNames<Enum>::kNames), fields_.text(key), EnumNames<Enum>::kWhat);
    } catch (const Error& error) {
      throw Error("{}: {}", fields_.where(), error.what());
    }
  }
  // Shapes and windows have fields of their own.
  void read(const char* /*key*/, bool /*required*/, Shape& sample) const {
    if (fields_.has("shape")) {
      std::vector<std::int64_t> extents = fields_.integers("shape");
      if (extents.empty() || extents.size() >= Shape::kMostRank)
        throw Error("{}: field 'shape' must have 1 to {} extents", fields_.where(), Shape::kMostRank - 1);
      extents.insert(extents.begin(), 1);
      sample = Shape(extents);
      return;
    }
    std::int64_t channels = 0, height = 0, width = 0;
    read("channels", true, channels);
    read("height", true, height);
    read("width", true, width);
    sample = {1, channels, height, width};
  }
  void read(const char* /*key*/, bool required, Window& window) const {
    if (required) require("kernel", "[height, width]");
    read_pair("kernel", window.kernel_height, window.kernel_width);
    read_pair("stride", window.stride_height, window.stride_width);
    read_pair("dilation", window.dilation_height, window.dilation_width);
    if (!fields_.has("pad")) return;
    const std::vector<std::int64_t> pad = fields_.integers("pad");
    if (pad.size() != 4) throw Error("{}: field 'pad' must be [top, left, bottom, right]", fields_.where());
    window.pad_top = pad[0], window.pad_left = pad[1], window.pad_bottom = pad[2], window.pad_right = pad[3];
  }

  void require(const char* key, const char* add) const {
    if (!fields_.has(key)) throw Error("{}: field '{}' is missing; add {}", fields_.where(), key, add);
  }
  void read_pair(const char* key, std::int64_t& first, std::int64_t& second) const {
    if (!fields_.has(key)) return;
    const std::vector<std::int64_t> list = fields_.integers(key);
    if (list.size() != 2) throw Error("{}: field '{}' must be [height, width]", fields_.where(), key);
    first = list[0], second = list[1];
  }

  JsonFields& fields_;
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
  spec.options = description_of(spec.kind).defaults;
  std::visit(OptionsReader(fields), spec.options);
  fields.finish();
  return spec;
}

// --- writing

template <typename Value>
requires(!NamedEnum<Value>) void write_field(ordered_json& object, const char* key, const Value& value) {
  object[key] = value;
}

template <NamedEnum Enum>
void write_field(ordered_json& object, const char* key, const Enum& value) {
  object[key] = enum_name(value);
}

void write_field(ordered_json& object, const char* /*key*/, const Shape& sample) {
  if (sample.rank() != 4) {
    object["shape"] = sample.extents().subspan(1);
    return;
  }
  object["channels"] = sample.channels();
  object["height"] = sample.height();
  object["width"] = sample.width();
}

void write_field(ordered_json& object, const char* /*key*/, const Window& w) {
  object["kernel"] = {w.kernel_height, w.kernel_width};
  if (w.stride_height != 1 || w.stride_width != 1) object["stride"] = {w.stride_height, w.stride_width};
  if (w.dilation_height != 1 || w.dilation_width != 1) object["dilation"] = {w.dilation_height, w.dilation_width};
  if (w.pad_top != 0 || w.pad_left != 0 || w.pad_bottom != 0 || w.pad_right != 0)
    object["pad"] = {w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
}

template <typename Options>
void write_options(ordered_json& object, const Options& options) {
  const Options defaults;
  for_each_field(options, [&](const auto& field, const auto& value) {
    if (field.use == FieldUse::made || field.use == FieldUse::derived) return;
    if (field.use == FieldUse::optional && value == defaults.*(field.member)) return;
    write_field(object, field.name, value);
  });
}

std::string value_name(const Network& network, Value value) {
  const Layer& layer = network.layer(value.layer);
  return value.output == 0 ? layer.name : fmt::format("{}:{}", layer.name, value.output);
}

ordered_json write_layer(const Network& network, const Layer& layer, const std::string& share) {
  ordered_json object;
  object["kind"] = kind_name(layer.kind);
  object["name"] = layer.name;
  for (const Value& input : layer.inputs) object["inputs"].push_back(value_name(network, input));
  std::visit([&](const auto& options) { write_options(object, options); }, layer.options);
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
      const auto [owner, is_new] = owners.emplace(layer.parameters[0].id, &layer);
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
  NewFile file(path);
  file.stream() << text;
  file.finish();
}

}  // namespace tide
