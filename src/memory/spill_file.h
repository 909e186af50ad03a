// The disk tier: one file of fixed size that has no name, so that nothing stays behind
// however the program ends. Its room is reserved at once: a full disk is an Error before
// training starts, not in the middle of it.
//
// One thread may read while another writes.
#pragma once

#include <filesystem>

#include "base/bytes.h"
#include "memory/file_io.h"

namespace tide {

class SpillFile {
 public:
  // An empty `directory` is the system's one for temporary files. Throws an Error that states
  // directory and size where the file cannot be made.
  SpillFile(const std::filesystem::path& directory, Bytes size, std::unique_ptr<FileIo> io = make_file_io());
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // All of the bytes, or an Error. REQUIRES: offset + bytes <= size().
  void read(Bytes offset, std::byte* to, Bytes bytes);
  void write(Bytes offset, const std::byte* from, Bytes bytes);

  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] const FileIo& io() const { return *io_; }

 private:
  void reserve();
  [[noreturn]] void fail(std::string_view what, Bytes bytes, int error) const;

  std::filesystem::path directory_;
  Bytes size_;
  std::unique_ptr<FileIo> io_;
  int file_ = -1;
};

}  // namespace tide
