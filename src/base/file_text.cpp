#include "base/file_text.h"

#include <fstream>

namespace tide {

std::string read_text(const std::filesystem::path& path, Bytes most, std::string_view what) {
  const std::string name = path.string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw Error("{}: no such file (or not a regular one); check the path", name);
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw Error("{} cannot be read: {}", name, error.message());
  if (size > most.size()) throw Error("{} has {} bytes; {} has at most {}", name, size, what, most.count());
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size)))
    throw Error("{} cannot be read; check its permissions", name);
  return text;
}

}  // namespace tide
