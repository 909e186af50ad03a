// The disk tier: one file of fixed size that has no name, so that nothing stays behind
// however the program ends. Its room is reserved at once: a full disk is an Error before
// training starts, not in the middle of it.
#pragma once

#include <filesystem>

#include "base/store.h"
#include "memory/file_io.h"

namespace tide {

class SpillFile final : public Store {
 public:
  // An empty `directory` is the system's one for temporary files. Throws an Error that states
  // directory and size where the file cannot be made.
  SpillFile(const std::filesystem::path& directory, Bytes size, std::unique_ptr<FileIo> io = make_file_io());
  ~SpillFile() override;
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  void read(Bytes offset, std::byte* to, Bytes bytes) override;
  void write(Bytes offset, const std::byte* from, Bytes bytes) override;
  [[nodiscard]] Bytes size() const override { return size_; }
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
