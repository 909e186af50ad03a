// numpy's .npy files: one array each, of numbers in row-major order.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace tide {

enum class NumberType : std::uint8_t { f64, f32, i64, i32, u8 };

struct NumberArray {
  std::string name;
  NumberType type = NumberType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // little-endian
  std::shared_ptr<const MappedFile> file;

  [[nodiscard]] std::int64_t elements() const;
  // As any type. REQUIRES: there is such an element.
  [[nodiscard]] double at(std::int64_t element) const;
};

// Throws an Error that names the file and what is wrong with it.
[[nodiscard]] NumberArray read_npy(const std::filesystem::path& path);

}  // namespace tide
