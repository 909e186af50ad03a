// The safetensors format: eight bytes with the length of a JSON header (little-endian),
// the header (name -> dtype, shape, data_offsets; "__metadata__": strings), then the data.
// F32 is written; F64, F32, F16 and BF16 are read as floats, other types are left out.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tide {

struct SafeTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

struct SafeTensors {
  std::map<std::string, std::string> metadata;
  std::vector<SafeTensor> tensors;
  std::vector<std::string> others = {};  // tensors of other types
};

// Writes beside `path` and renames. Throws an Error that names the file, also for names that
// stand twice and shapes that are not those of the values.
void write_safetensors(const std::filesystem::path& path, const SafeTensors& content);
// Validates every length and offset against the file's size before it allocates. The
// tensors come in the order of their data.
[[nodiscard]] SafeTensors read_safetensors(const std::filesystem::path& path);

}  // namespace tide
