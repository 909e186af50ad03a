#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace tide {
namespace {

struct OpenFile {
  int descriptor;
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

[[noreturn]] void throw_unreadable(const std::filesystem::path& path) {
  throw Error("{}: cannot be read: {}", path.string(), std::system_category().message(errno));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const OpenFile file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.descriptor < 0 || ::fstat(file.descriptor, &status) != 0) throw_unreadable(path);
  if (!S_ISREG(status.st_mode)) throw Error("{}: is not a file; name one", path.string());
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor, 0);
  if (memory == MAP_FAILED) throw_unreadable(path);
  memory_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (memory_ != nullptr) ::munmap(const_cast<std::byte*>(memory_), size_);
}

}  // namespace tide
