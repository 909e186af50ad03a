// A job on disk: parameters, running statistics and optimizer state in a safetensors file,
// with the step count, the seed and what is known of the data in its metadata.
#pragma once

#include <filesystem>

#include "train/session.h"

namespace tide {

struct Checkpoint {
  std::string model;
  std::uint64_t steps = 0;
  std::uint64_t seed = 0;
  std::vector<NamedTensor> tensors;
  std::vector<std::string> classes = {};     // names, where the data has them
  std::optional<ImageReading> reading = {};  // of the data, where it is images
};

// Writes beside the target and renames, so that an interruption never leaves half a file.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
// Throws an Error that names the file and what is wrong with it.
[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& path);

}  // namespace tide
