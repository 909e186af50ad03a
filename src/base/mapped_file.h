// A file's bytes without a copy of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace tide {

class MappedFile {
 public:
  // Throws an Error that names the file. An empty one has no bytes.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return {memory_, size_}; }

 private:
  const std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tide
