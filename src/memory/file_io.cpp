#include "memory/file_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tide {
namespace {

class PlainIo final : public FileIo {
 public:
  [[nodiscard]] std::string_view name() const override { return "pread"; }
  [[nodiscard]] int reserve(int file, std::int64_t bytes) override { return ::posix_fallocate(file, 0, bytes); }
  [[nodiscard]] std::int64_t read(int file, std::byte* to, std::int64_t bytes, std::int64_t offset) override {
    const ssize_t moved = ::pread(file, to, static_cast<std::size_t>(bytes), offset);
    return moved < 0 ? -errno : moved;
  }
  [[nodiscard]] std::int64_t write(int file, const std::byte* from, std::int64_t bytes, std::int64_t offset) override {
    const ssize_t moved = ::pwrite(file, from, static_cast<std::size_t>(bytes), offset);
    return moved < 0 ? -errno : moved;
  }
};

}  // namespace

std::unique_ptr<FileIo> make_plain_io() { return std::make_unique<PlainIo>(); }

std::unique_ptr<FileIo> make_file_io() {
  std::unique_ptr<FileIo> uring = make_uring_io();
  return uring ? std::move(uring) : make_plain_io();
}

}  // namespace tide
