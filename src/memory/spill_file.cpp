#include "memory/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/size_text.h"

namespace tide {
namespace {

std::string error_text(int error) { return std::generic_category().message(error); }

// A file without a name, or one that loses it at once where the file system has no such files.
int open_unnamed(const std::filesystem::path& directory) {
  const int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string path = (directory / "tide-spill-XXXXXX").string();
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

// Moves all bytes with as many calls as it takes: 0 or an errno, and -1 where nothing moves any more.
template <typename Transfer>
int transfer_all(std::int64_t bytes, const Transfer& transfer) {
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t moved = transfer(done);
    if (moved == -EINTR || moved == -EAGAIN) continue;
    if (moved < 0) return static_cast<int>(-moved);
    if (moved == 0) return -1;
    done += moved;
  }
  return 0;
}

}  // namespace

SpillFile::SpillFile(const std::filesystem::path& directory, Bytes size, std::unique_ptr<FileIo> io)
    : directory_(directory.empty() ? std::filesystem::temp_directory_path() : directory),
      size_(size),
      io_(std::move(io)) {
  file_ = open_unnamed(directory_);
  if (file_ < 0)
    throw Error("no spill file can be made in {}: {}; choose another folder with --spill", directory_.string(),
                error_text(errno));
  try {
    reserve();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

SpillFile::~SpillFile() { ::close(file_); }

void SpillFile::reserve() {
  if (size_.is_zero()) return;
  int error = 0;
  do error = io_->reserve(file_, size_.count());
  while (error == EINTR);
  if (error != 0)
    throw Error("{} has no room for a spill file of {}: {}; choose another folder with --spill", directory_.string(),
                format_size(size_), error_text(error));
}

void SpillFile::fail(std::string_view what, Bytes bytes, int error) const {
  throw Error("{} {} bytes of the spill file in {} failed: {}", what, bytes.count(), directory_.string(),
              error < 0 ? "nothing was moved" : error_text(error));
}

void SpillFile::read(Bytes offset, std::byte* to, Bytes bytes) {
  const int error = transfer_all(bytes.count(), [&](std::int64_t done) {
    return io_->read(file_, to + done, bytes.count() - done, offset.count() + done);
  });
  if (error != 0) fail("reading", bytes, error);
}

void SpillFile::write(Bytes offset, const std::byte* from, Bytes bytes) {
  const int error = transfer_all(bytes.count(), [&](std::int64_t done) {
    return io_->write(file_, from + done, bytes.count() - done, offset.count() + done);
  });
  if (error != 0) fail("writing", bytes, error);
}

}  // namespace tide
