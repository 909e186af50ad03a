#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <tuple>

#include "base/checked.h"
#include "base/new_file.h"
#include "formats/json_fields.h"

namespace tide {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::uint64_t kLargestHeader = std::uint64_t{100} << 20;

// The types of the format. What is no float is not read.
struct ElementType {
  std::string_view name;
  std::int64_t bytes;
  bool is_float;
};
constexpr std::array kElementTypes{
    ElementType{"F32", 4, true},  ElementType{"F64", 8, true},  ElementType{"F16", 2, true},
    ElementType{"BF16", 2, true}, ElementType{"I64", 8, false}, ElementType{"U64", 8, false},
    ElementType{"I32", 4, false}, ElementType{"U32", 4, false}, ElementType{"I16", 2, false},
    ElementType{"U16", 2, false}, ElementType{"I8", 1, false},  ElementType{"U8", 1, false},
    ElementType{"BOOL", 1, false}};

struct Entry {
  std::string name;
  const ElementType* type = nullptr;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;
};

// Nothing where it does not fit in 63 bits.
std::optional<std::int64_t> bytes_of(const std::vector<std::int64_t>& shape, std::int64_t bytes) {
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

Entry read_entry(const std::string& name, const nlohmann::json& object, const std::string& file,
                 std::int64_t data_bytes) {
  JsonFields fields(object, fmt::format("{}, tensor {}", file, in_quotes(name)));
  const std::string type = fields.text("dtype");
  const auto* const known = std::find_if(kElementTypes.begin(), kElementTypes.end(),
                                         [&](const ElementType& candidate) { return candidate.name == type; });
  if (known == kElementTypes.end()) throw Error("{} has the unknown type {}", fields.where(), in_quotes(type));
  Entry entry{name, known, fields.integers("shape"), 0, 0};
  const std::vector<std::int64_t> offsets = fields.integers("data_offsets");
  fields.finish();
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] || offsets[1] > data_bytes)
    throw Error("{} lies outside the file", fields.where());
  if (!fields.has("shape")) throw Error("{} has no shape", fields.where());
  for (const std::int64_t extent : entry.shape)
    if (extent < 0) throw Error("{} has a negative extent", fields.where());
  if (bytes_of(entry.shape, known->bytes) != offsets[1] - offsets[0])
    throw Error("{} has a size that is not its shape's", fields.where());
  entry.begin = offsets[0];
  entry.end = offsets[1];
  return entry;
}

// What a file has before its data.
struct Header {
  nlohmann::json fields;
  std::int64_t data_start = 0, data_bytes = 0;
};

Header read_header(std::ifstream& file, std::uintmax_t size, const std::string& name) {
  std::uint64_t length = 0;
  if (size < sizeof length || !file.read(reinterpret_cast<char*>(&length), sizeof length))
    throw Error("{} is too short for a safetensors file", name);
  if (length > kLargestHeader || length > size - sizeof length)
    throw Error("{} is not a safetensors file: its header does not fit", name);
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) throw Error("{} ends early", name);
  Header header{parse_json(text, name), static_cast<std::int64_t>(sizeof length + length),
                static_cast<std::int64_t>(size - sizeof length - length)};
  if (!header.fields.is_object()) throw Error("{} is not a safetensors file: its header is no object", name);
  return header;
}

std::map<std::string, std::string> read_metadata(const nlohmann::json& object, const std::string& name) {
  if (!object.is_object()) throw Error("{} has metadata that is no object", name);
  std::map<std::string, std::string> metadata;
  for (const auto& [field, item] : object.items()) {
    if (!item.is_string()) throw Error("{} has metadata {} that is no string", name, in_quotes(field));
    metadata[field] = item.get<std::string>();
  }
  return metadata;
}

// The format allows neither overlaps, by which a small file could ask for unlimited memory,
// nor holes, which only a damaged file has. REQUIRES: entries are in order.
void require_gapless(const std::vector<Entry>& entries, std::int64_t data_bytes, const std::string& name) {
  std::int64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < end) throw Error("{}, tensor {} overlaps another", name, in_quotes(entry.name));
    if (entry.begin > end)
      throw Error("{} has bytes before tensor {} that belong to none", name, in_quotes(entry.name));
    end = entry.end;
  }
  if (end != data_bytes) throw Error("{} has {} bytes behind its last tensor", name, data_bytes - end);
}

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U, exponent = (bits >> 10U) & 0x1FU, fraction = bits & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13U);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23U | fraction << 13U);
  const float tiny = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -tiny : tiny;
}

template <typename Number, typename Convert>
void convert(std::span<const char> bytes, std::span<float> values, Convert to_float) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number number;
    std::memcpy(&number, bytes.data() + i * sizeof(Number), sizeof(Number));
    values[i] = to_float(number);
  }
}

// A piece at a time, so that there is never a copy of all.
void read_others(std::ifstream& file, const Entry& entry, std::span<float> values, const std::string& name) {
  constexpr std::size_t kPiece = 1 << 16;
  std::vector<char> bytes(kPiece * static_cast<std::size_t>(entry.type->bytes));
  for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
    const std::span<float> piece = values.subspan(begin, std::min(kPiece, values.size() - begin));
    const std::size_t count = piece.size() * static_cast<std::size_t>(entry.type->bytes);
    if (!file.read(bytes.data(), static_cast<std::streamsize>(count))) throw Error("{} ends early", name);
    const std::span<const char> read(bytes.data(), count);
    if (entry.type->name == "F64")
      convert<double>(read, piece, [](double number) { return static_cast<float>(number); });
    else if (entry.type->name == "F16")
      convert<std::uint16_t>(read, piece, from_half);
    else
      convert<std::uint16_t>(read, piece,
                             [](std::uint16_t upper) { return std::bit_cast<float>(std::uint32_t{upper} << 16U); });
  }
}

SafeTensor read_tensor(std::ifstream& file, const Entry& entry, std::int64_t data_start, const std::string& name) {
  const auto elements = static_cast<std::size_t>((entry.end - entry.begin) / entry.type->bytes);
  SafeTensor tensor{entry.name, entry.shape, std::vector<float>(elements)};
  file.seekg(data_start + entry.begin);
  if (entry.type->name != "F32")
    read_others(file, entry, tensor.values, name);
  else if (elements > 0 && !file.read(reinterpret_cast<char*>(tensor.values.data()), entry.end - entry.begin))
    throw Error("{} ends early", name);
  return tensor;
}

std::string header_of(const std::filesystem::path& path, const SafeTensors& content) try {
  nlohmann::json header;
  header["__metadata__"] = content.metadata;
  std::int64_t offset = 0;
  for (const SafeTensor& tensor : content.tensors) {
    const std::int64_t end = checked_add(offset, checked_multiply(static_cast<std::int64_t>(tensor.values.size()), 4));
    if (bytes_of(tensor.shape, 4) != end - offset)
      throw Error("{} cannot be written: {} has another shape than its values", path.string(), in_quotes(tensor.name));
    if (header.contains(tensor.name))
      throw Error("{} cannot be written: the name {} stands twice", path.string(), in_quotes(tensor.name));
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  return header.dump();
} catch (const nlohmann::json::exception&) {
  throw Error("{} cannot be written: a name in it is not UTF-8", path.string());
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const SafeTensors& content) {
  std::string text = header_of(path, content);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned
  const std::uint64_t length = text.size();

  NewFile file(path);
  file.stream().write(reinterpret_cast<const char*>(&length), sizeof length);
  file.stream().write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const SafeTensor& tensor : content.tensors)
    file.stream().write(reinterpret_cast<const char*>(tensor.values.data()),
                        static_cast<std::streamsize>(tensor.values.size() * sizeof(float)));
  file.finish();
}

SafeTensors read_safetensors(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw Error("{} cannot be read: {}", name, error.message());
  std::ifstream file(path, std::ios::binary);
  const Header header = read_header(file, size, name);
  SafeTensors content;
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.fields.items()) {
    if (key == "__metadata__") {
      content.metadata = read_metadata(value, name);
      continue;
    }
    if (!value.is_object()) throw Error("{}, tensor {} is no object", name, in_quotes(key));
    entries.push_back(read_entry(key, value, name, header.data_bytes));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  require_gapless(entries, header.data_bytes, name);
  for (const Entry& entry : entries) {
    if (entry.type->is_float)
      content.tensors.push_back(read_tensor(file, entry, header.data_start, name));
    else
      content.others.push_back(entry.name);
  }
  return content;
}

}  // namespace tide
