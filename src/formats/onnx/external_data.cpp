#include "formats/onnx/external_data.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "formats/json_fields.h"

namespace tide {
namespace {

// Equal arrays may share their bytes.
constexpr std::int64_t kMostOverlaps = 16;

}  // namespace

std::vector<std::byte> read_whole_file(const std::filesystem::path& path, std::int64_t limit) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  if (error) throw Error("{} cannot be read: {}", path.string(), error.message());
  if (!regular) throw Error("{} cannot be read: it is no file", path.string());
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw Error("{} cannot be read: {}", path.string(), error.message());
  if (size > static_cast<std::uintmax_t>(limit))
    throw Error("{} has {} bytes; at most {} are read", path.string(), size, limit);
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (!file || !file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    throw Error("{} cannot be read to its end", path.string());
  return bytes;
}

ExternalData::Bytes ExternalData::read(const std::string& location) const {
  namespace fs = std::filesystem;
  const fs::path given(location);
  const auto refuse = [&](const char* why) {
    throw Error("{}: its data lies in {}, which {}; it must be a file in the folder of the model", source_,
                in_quotes(location), why);
  };
  if (location.empty()) refuse("is no name");
  if (location.find('\0') != std::string::npos) refuse("is no name");
  if (given.is_absolute()) refuse("is not within that folder");
  if (std::find(given.begin(), given.end(), "..") != given.end()) refuse("leaves that folder");
  std::error_code error;
  const fs::path folder = fs::canonical(folder_.empty() ? fs::path(".") : folder_, error);
  if (error) refuse("cannot be found");
  const fs::path place = fs::canonical(folder / given, error);
  if (error) refuse("is not there");
  const auto [end, other] = std::mismatch(folder.begin(), folder.end(), place.begin(), place.end());
  if (end != folder.end()) refuse("is a link that leaves that folder");
  return std::make_shared<const std::vector<std::byte>>(
      read_whole_file(place, std::numeric_limits<std::int64_t>::max()));
}

ExternalData::Part ExternalData::part(const std::string& location, std::int64_t offset, std::int64_t length) {
  File& file = files_[location];
  if (file.bytes == nullptr) file.bytes = read(location);
  const auto size = static_cast<std::int64_t>(file.bytes->size());
  if (offset < 0 || offset > size || length > size - offset)
    throw Error("{}: {} bytes at {} of {} are not there; it has {}", source_, length, offset, in_quotes(location),
                size);
  const std::int64_t count = length < 0 ? size - offset : length;
  file.taken = checked_add(file.taken, count);
  if (file.taken > checked_multiply(kMostOverlaps, size))
    throw Error("{}: its arrays take the same bytes of {} more than {} times; store each of them once", source_,
                in_quotes(location), kMostOverlaps);
  return {std::span(*file.bytes).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count)),
          file.bytes};
}

}  // namespace tide
