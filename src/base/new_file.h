// A file that is there as a whole or not at all.
#pragma once

#include <filesystem>
#include <fstream>

namespace tide {

// Where a file by that name will lie: links are followed. Throws an Error where there can be none: its folder is not
// there or cannot be written to, or the name is that of a folder or a device.
[[nodiscard]] std::filesystem::path place_of_new_file(const std::filesystem::path& path);

// Written under another name, beside the one that it replaces in the end.
class NewFile {
 public:
  // Throws an Error as place_of_new_file() does.
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] std::ofstream& stream() { return stream_; }
  // All is written. Throws an Error where that went wrong; then what was there before still is.
  void finish();

 private:
  std::filesystem::path name_, place_, temporary_;
  std::ofstream stream_;
};

}  // namespace tide
