// What an ONNX file keeps in files beside it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tide {

class ExternalData {
 public:
  // `source` begins messages.
  ExternalData(std::filesystem::path folder, std::string source)
      : folder_(std::move(folder)), source_(std::move(source)) {}

  struct Part {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  // Throws an Error for a name that is no file in the folder, and for parts that the file does not have. `length`
  // below 0: all behind the offset. A file is read once; parts may overlap, but not so that they would be many times
  // the file.
  [[nodiscard]] Part part(const std::string& location, std::int64_t offset, std::int64_t length);

 private:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  struct File {
    Bytes bytes;
    std::int64_t taken = 0;  // by all parts
  };
  [[nodiscard]] Bytes read(const std::string& location) const;

  std::filesystem::path folder_;
  std::string source_;
  std::map<std::string, File> files_;
};

// The whole of a regular file. Throws an Error where it cannot be read, or is larger than `limit`.
[[nodiscard]] std::vector<std::byte> read_whole_file(const std::filesystem::path& path, std::int64_t limit);

}  // namespace tide
