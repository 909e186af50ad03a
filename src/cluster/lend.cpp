#include "cluster/lend.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/error.h"

namespace tide {
namespace {

// What a borrower asks for, before the bytes go one way or the other.
struct LoanRequest {
  enum class What : std::uint64_t { write, read, end } what = What::end;
  std::uint64_t offset = 0, bytes = 0;
};

std::span<const std::byte> bytes_of(const LoanRequest& request) { return std::as_bytes(std::span(&request, 1)); }

std::uint64_t available_bytes() {
  std::ifstream list("/proc/meminfo");
  std::uint64_t kilobytes = 0;
  for (std::string line; std::getline(list, line);)
    if (std::sscanf(line.c_str(), "MemAvailable: %" SCNu64, &kilobytes) == 1) return kilobytes * 1024;
  return std::numeric_limits<std::uint64_t>::max() / 2;
}

constexpr const char* kFailedLoan = "failed: ";

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  // Where memory runs out the system does not say no: it ends processes.
  if (const std::uint64_t available = available_bytes(); bytes > available)
    throw Error("{} bytes of host memory cannot be lent: {} are available", bytes, available);
  descriptor_ = memfd_create("tide-loan", MFD_CLOEXEC);
  int result = descriptor_ < 0 ? errno : 0;
  if (result == 0 && bytes > 0) result = posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
  if (result != 0) {
    if (descriptor_ >= 0) close(descriptor_);
    throw Error("{} bytes of host memory cannot be lent: {}", bytes, std::strerror(result));
  }
  map();
}

SharedMemory::SharedMemory(const std::string& text, std::size_t bytes) : bytes_(bytes) {
  std::istringstream words(text);
  long process = 0;
  int descriptor = 0;
  std::uint64_t device = 0, inode = 0;
  words >> process >> descriptor >> device >> inode;
  descriptor_ = open(fmt::format("/proc/{}/fd/{}", process, descriptor).c_str(), O_RDWR | O_CLOEXEC);
  // Another machine of the same name may have such a process, too.
  struct stat found {};
  if (descriptor_ < 0 || fstat(descriptor_, &found) != 0 || found.st_dev != device || found.st_ino != inode ||
      static_cast<std::uint64_t>(found.st_size) != bytes) {
    if (descriptor_ >= 0) close(descriptor_);
    throw Error("the memory of process {} cannot be shared", process);
  }
  map();
}

void SharedMemory::map() {
  if (bytes_ == 0) return;
  void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) {
    close(descriptor_);
    throw Error("{} bytes of shared memory cannot be had: {}", bytes_, std::strerror(errno));
  }
  data_ = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() {
  if (data_) munmap(data_, bytes_);
  close(descriptor_);
}

std::string SharedMemory::text() const {
  struct stat found {};
  fstat(descriptor_, &found);
  return fmt::format("{} {} {} {}", getpid(), descriptor_, found.st_dev, found.st_ino);
}

Lender::Lender(std::unique_ptr<Communicator> communicator, int borrower, std::unique_ptr<SharedMemory> memory,
               bool serves)
    : communicator_(std::move(communicator)), borrower_(borrower), memory_(std::move(memory)) {
  if (serves) thread_ = std::thread([this] { serve(); });
}

Lender::~Lender() {
  if (!thread_.joinable()) return;
  if (std::uncaught_exceptions() > 0) communicator_->interrupt();
  thread_.join();
}

void Lender::serve() {
  try {
    for (LoanRequest request;;) {
      communicator_->exchange(borrower_, {}, std::as_writable_bytes(std::span(&request, 1)));
      if (request.what == LoanRequest::What::end) return;
      const std::span<std::byte> part =
          std::span(memory_->data(), memory_->bytes()).subspan(request.offset, request.bytes);
      if (request.what == LoanRequest::What::write)
        communicator_->exchange(borrower_, {}, part);
      else
        communicator_->exchange(borrower_, part, {});
    }
  } catch (const Error&) {
    // The job has been given up, or the borrower notices the same.
  }
}

Borrower::Borrower(std::unique_ptr<Communicator> communicator, int lender, std::size_t bytes,
                   std::unique_ptr<SharedMemory> memory)
    : communicator_(std::move(communicator)), lender_(lender), bytes_(bytes), memory_(std::move(memory)) {}

Borrower::~Borrower() {
  if (memory_) return;
  try {
    communicator_->exchange(lender_, bytes_of(LoanRequest{}), {});
  } catch (const Error&) {
    // The job has been given up.
  }
}

void Borrower::check_range(std::size_t offset, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset)
    throw Error("bytes {} to {} are not in a loan of {}", offset, offset + bytes, bytes_);
}

void Borrower::write(std::size_t offset, std::span<const std::byte> values) {
  check_range(offset, values.size());
  if (values.empty()) return;
  if (memory_) {
    std::memcpy(memory_->data() + offset, values.data(), values.size());
    return;
  }
  communicator_->exchange(lender_, bytes_of({LoanRequest::What::write, offset, values.size()}), {});
  communicator_->exchange(lender_, values, {});
}

void Borrower::read(std::size_t offset, std::span<std::byte> values) {
  check_range(offset, values.size());
  if (values.empty()) return;
  if (memory_) {
    std::memcpy(values.data(), memory_->data() + offset, values.size());
    return;
  }
  communicator_->exchange(lender_, bytes_of({LoanRequest::What::read, offset, values.size()}), {});
  communicator_->exchange(lender_, {}, values);
}

Loans make_loans(Communicator& communicator, std::span<const Loan> loans) {
  Loans made;
  const int own = communicator.rank();
  for (const Loan& loan : loans) {
    assert(loan.lender != loan.borrower);
    std::unique_ptr<SharedMemory> memory;
    std::string text;
    if (own == loan.lender) {
      try {
        memory = std::make_unique<SharedMemory>(loan.bytes);
        text = memory->text();
      } catch (const Error& error) {
        text = kFailedLoan + fmt::format("rank {} on host {}: {}", own, communicator.host(own), error.what());
      }
    }
    text = communicator.gather(text)[static_cast<std::size_t>(loan.lender)];
    if (text.starts_with(kFailedLoan)) throw Error("{}", text.substr(std::strlen(kFailedLoan)));
    bool is_shared = false;
    if (own == loan.borrower && communicator.host(own) == communicator.host(loan.lender)) {
      try {
        memory = std::make_unique<SharedMemory>(text, loan.bytes);
        is_shared = true;
      } catch (const Error&) {
        // The same name, but not the same machine; or one that lets processes not look at each other.
      }
    }
    is_shared = communicator.gather(is_shared ? "shared" : "")[static_cast<std::size_t>(loan.borrower)] == "shared";
    std::unique_ptr<Communicator> between = is_shared ? nullptr : communicator.duplicate();
    if (own == loan.lender)
      made.lent.push_back(std::make_unique<Lender>(std::move(between), loan.borrower, std::move(memory), !is_shared));
    if (own == loan.borrower)
      made.borrowed.push_back(
          std::make_unique<Borrower>(std::move(between), loan.lender, loan.bytes, std::move(memory)));
  }
  return made;
}

}  // namespace tide
