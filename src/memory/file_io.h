// The few calls that a spill file makes of the system, behind an interface so that tests can
// have any of them fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tide {

// One thread may read while another writes; not more than one of each. Results are the bytes
// moved, which may be fewer than asked for, or a negative errno.
class FileIo {
 public:
  virtual ~FileIo() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Reserves room on the disk: 0 or an errno.
  [[nodiscard]] virtual int reserve(int file, std::int64_t bytes) = 0;
  [[nodiscard]] virtual std::int64_t read(int file, std::byte* to, std::int64_t bytes, std::int64_t offset) = 0;
  [[nodiscard]] virtual std::int64_t write(int file, const std::byte* from, std::int64_t bytes,
                                           std::int64_t offset) = 0;
};

// pread and pwrite.
[[nodiscard]] std::unique_ptr<FileIo> make_plain_io();
// io_uring, with several requests under way for every call; null where the kernel has none
// or does not let us.
[[nodiscard]] std::unique_ptr<FileIo> make_uring_io();
// The better one of these two.
[[nodiscard]] std::unique_ptr<FileIo> make_file_io();

}  // namespace tide
