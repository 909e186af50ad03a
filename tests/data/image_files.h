// The small images beside the tests (files/make_files.py), and folders made of them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"

namespace tide::test {

inline std::filesystem::path image_file(const std::string& name) {
  return std::filesystem::path(TIDE_TEST_DATA) / "data" / "files" / name;
}

inline std::vector<std::byte> bytes_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

inline void write_bytes(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

// A folder that goes away with the test.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(std::filesystem::path(testing::TempDir()) / fmt::format("tide_{}_{}", ::getpid(), name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // A copy of an image, "cats/one.jpg".
  void add(const std::string& name, const std::string& image) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::filesystem::copy_file(image_file(image), path_ / name, std::filesystem::copy_options::overwrite_existing);
  }

 private:
  std::filesystem::path path_;
};

// One member of a tar file, with its header and padding.
inline std::string tar_member(const std::string& name, const std::string& content) {
  std::string header(512, '\0');
  name.copy(header.data(), 100);
  fmt::format("{:011o}", content.size()).copy(header.data() + 124, 12);
  header[156] = '0';
  std::string("ustar").copy(header.data() + 257, 6);
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < header.size(); ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(header[i]);
  fmt::format("{:06o}", sum).copy(header.data() + 148, 7);
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512, '\0');
  return header + padded;
}

inline std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "\x93NUMPY" and so on.
inline std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape);
  header.resize((header.size() + 10 + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::string text = "\x93NUMPY";
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 0xFFU);
  text += static_cast<char>(header.size() >> 8U);
  return text + header + data;
}

inline std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xFFU);
  return text;
}

}  // namespace tide::test
