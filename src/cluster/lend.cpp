#include "cluster/lend.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

constexpr std::byte kWritten{1};  // what the lender says when it has them

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

Lender::Lender(LoanChannels channels, int borrower, std::unique_ptr<SharedMemory> memory)
    : channels_(std::move(channels)), borrower_(borrower), memory_(std::move(memory)) {
  for (Communicator* const channel : {channels_.writes.get(), channels_.reads.get()})
    if (channel != nullptr) threads_.emplace_back([this, channel] { serve(*channel); });
}

Lender::~Lender() {
  if (!threads_.empty() && std::uncaught_exceptions() > 0) channels_.writes->interrupt();
  for (std::thread& thread : threads_) thread.join();
}

void Lender::serve(Communicator& channel) {
  try {
    for (LoanRequest request;;) {
      channel.exchange(borrower_, {}, std::as_writable_bytes(std::span(&request, 1)));
      if (request.what == LoanRequest::What::end) return;
      const std::span<std::byte> part =
          std::span(memory_->data(), memory_->bytes()).subspan(request.offset, request.bytes);
      if (request.what == LoanRequest::What::write) {
        channel.exchange(borrower_, {}, part);
        channel.exchange(borrower_, std::span(&kWritten, 1), {});
      } else {
        channel.exchange(borrower_, part, {});
      }
    }
  } catch (const Error&) {
    // The job has been given up, or the borrower notices the same.
  }
}

Borrower::Borrower(LoanChannels channels, int lender, std::size_t bytes, std::unique_ptr<SharedMemory> memory)
    : channels_(std::move(channels)), lender_(lender), bytes_(bytes), memory_(std::move(memory)) {}

Borrower::~Borrower() {
  if (memory_) return;
  end(*channels_.writes);
  end(*channels_.reads);
}

void Borrower::end(Communicator& channel) noexcept {
  try {
    channel.exchange(lender_, bytes_of(LoanRequest{}), {});
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
  channels_.writes->exchange(lender_, bytes_of({LoanRequest::What::write, offset, values.size()}), {});
  channels_.writes->exchange(lender_, values, {});
  // Bytes that are on their way are not there yet, and what is read comes by the other channel.
  std::byte written{};
  channels_.writes->exchange(lender_, {}, std::span(&written, 1));
}

void Borrower::read(std::size_t offset, std::span<std::byte> values) {
  check_range(offset, values.size());
  if (values.empty()) return;
  if (memory_) {
    std::memcpy(values.data(), memory_->data() + offset, values.size());
    return;
  }
  channels_.reads->exchange(lender_, bytes_of({LoanRequest::What::read, offset, values.size()}), {});
  channels_.reads->exchange(lender_, {}, values);
}

template <typename Move>
void BorrowedMemory::each_part(Bytes offset, Bytes bytes, const Move& move) const {
  std::size_t first = offset.size(), left = bytes.size(), done = 0;
  for (const std::unique_ptr<Borrower>& borrower : loans_.borrowed) {
    if (first >= borrower->bytes()) {
      first -= borrower->bytes();
      continue;
    }
    const std::size_t part = std::min(left, borrower->bytes() - first);
    move(*borrower, first, done, part);
    first = 0;
    done += part;
    left -= part;
    if (left == 0) return;
  }
  if (left > 0)
    throw Error("bytes {} to {} are not in loans of {}", offset.count(), (offset + bytes).count(), size().count());
}

void BorrowedMemory::read(Bytes offset, std::byte* to, Bytes bytes) {
  each_part(offset, bytes, [&](Borrower& borrower, std::size_t first, std::size_t done, std::size_t part) {
    borrower.read(first, std::span(to + done, part));
  });
}

void BorrowedMemory::write(Bytes offset, const std::byte* from, Bytes bytes) {
  each_part(offset, bytes, [&](Borrower& borrower, std::size_t first, std::size_t done, std::size_t part) {
    borrower.write(first, std::span(from + done, part));
  });
}

Bytes BorrowedMemory::size() const {
  Bytes sum;
  for (const std::unique_ptr<Borrower>& borrower : loans_.borrowed)
    sum += Bytes(static_cast<std::int64_t>(borrower->bytes()));
  return sum;
}

std::vector<Loan> share_out_loans(std::span<const Bytes> offered) {
  Bytes all;
  std::int64_t borrowers = 0;
  for (const Bytes bytes : offered) {
    all += bytes;
    borrowers += bytes.is_zero() ? 1 : 0;
  }
  std::vector<Loan> loans;
  if (borrowers == 0) return loans;
  const std::size_t part = Bytes(all.count() / borrowers / kAlignment * kAlignment).size();
  std::size_t lender = 0, left = offered[0].size();
  for (std::size_t rank = 0; rank < offered.size(); ++rank)
    for (std::size_t wanted = offered[rank].is_zero() ? part : 0; wanted > 0;) {
      while (left == 0) left = offered[++lender].size();
      const std::size_t taken = std::min(wanted, left);
      loans.push_back({static_cast<int>(lender), static_cast<int>(rank), taken});
      wanted -= taken;
      left -= taken;
    }
  return loans;
}

std::vector<Loan> pair_loans(std::span<const Bytes> offered, std::span<const std::string> hosts) {
  std::vector<Loan> loans;
  std::vector<std::int64_t> borrowers(offered.size(), 0);  // by lender
  for (std::size_t rank = 0; rank < offered.size(); ++rank) {
    if (!offered[rank].is_zero()) continue;
    // By the number of those before it on its machine.
    std::vector<std::size_t> lenders;
    std::size_t before = 0;
    for (std::size_t other = 0; other < offered.size(); ++other) {
      if (hosts[other] != hosts[rank]) continue;
      if (!offered[other].is_zero()) lenders.push_back(other);
      if (offered[other].is_zero() && other < rank) ++before;
    }
    if (lenders.empty()) continue;
    const std::size_t lender = lenders[before % lenders.size()];
    ++borrowers[lender];
    loans.push_back({static_cast<int>(lender), static_cast<int>(rank), 0});
  }
  for (Loan& loan : loans) {
    const auto lender = static_cast<std::size_t>(loan.lender);
    loan.bytes = Bytes(offered[lender].count() / borrowers[lender] / kAlignment * kAlignment).size();
  }
  std::erase_if(loans, [](const Loan& loan) { return loan.bytes == 0; });
  return loans;
}

std::vector<Loan> cut_loans(std::span<const Loan> loans, std::span<const Bytes> needed) {
  std::vector<std::size_t> left;
  for (const Bytes bytes : needed) left.push_back(bytes.size());
  std::vector<Loan> cut;
  for (Loan loan : loans) {
    std::size_t& wanted = left[static_cast<std::size_t>(loan.borrower)];
    loan.bytes = std::min(loan.bytes, wanted);
    wanted -= loan.bytes;
    if (loan.bytes > 0) cut.push_back(loan);
  }
  return cut;
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
    LoanChannels channels;
    if (!is_shared) {
      channels.writes = communicator.duplicate();
      channels.reads = communicator.duplicate();
    }
    if (own == loan.lender)
      made.lent.push_back(std::make_unique<Lender>(std::move(channels), loan.borrower, std::move(memory)));
    if (own == loan.borrower)
      made.borrowed.push_back(
          std::make_unique<Borrower>(std::move(channels), loan.lender, loan.bytes, std::move(memory)));
  }
  return made;
}

}  // namespace tide
