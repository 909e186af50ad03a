#include "formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <optional>
#include <tuple>

#include "base/checked.h"
#include "base/new_file.h"
#include "formats/json_fields.h"

namespace tide {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::uint64_t kLargestHeader = std::uint64_t{100} << 20;

struct Entry {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;
};

// Nothing where it does not fit in 63 bits.
std::optional<std::int64_t> bytes_of(const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = 4;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

Entry read_entry(const std::string& name, const nlohmann::json& object, const std::string& file,
                 std::int64_t data_bytes) {
  JsonFields fields(object, fmt::format("{}, tensor {}", file, in_quotes(name)));
  if (const std::string type = fields.text("dtype"); type != "F32")
    throw Error("{} has type {}; only F32 is read", fields.where(), in_quotes(type));
  Entry entry{name, fields.integers("shape"), 0, 0};
  const std::vector<std::int64_t> offsets = fields.integers("data_offsets");
  fields.finish();
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] || offsets[1] > data_bytes)
    throw Error("{} lies outside the file", fields.where());
  if (!fields.has("shape")) throw Error("{} has no shape", fields.where());
  for (const std::int64_t extent : entry.shape)
    if (extent < 0) throw Error("{} has a negative extent", fields.where());
  if (bytes_of(entry.shape) != offsets[1] - offsets[0])
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

SafeTensor read_tensor(std::ifstream& file, const Entry& entry, std::int64_t data_start, const std::string& name) {
  SafeTensor tensor{entry.name, entry.shape, std::vector<float>(static_cast<std::size_t>(entry.end - entry.begin) / 4)};
  file.seekg(data_start + entry.begin);
  if (!tensor.values.empty() && !file.read(reinterpret_cast<char*>(tensor.values.data()), entry.end - entry.begin))
    throw Error("{} ends early", name);
  return tensor;
}

std::string header_of(const std::filesystem::path& path, const SafeTensors& content) try {
  nlohmann::json header;
  header["__metadata__"] = content.metadata;
  std::int64_t offset = 0;
  for (const SafeTensor& tensor : content.tensors) {
    const std::int64_t end = checked_add(offset, checked_multiply(static_cast<std::int64_t>(tensor.values.size()), 4));
    if (bytes_of(tensor.shape) != end - offset)
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
  for (const Entry& entry : entries) content.tensors.push_back(read_tensor(file, entry, header.data_start, name));
  return content;
}

}  // namespace tide
