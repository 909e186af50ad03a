// io_uring by its three system calls: what is needed of it here is less than a library's
// interface to it.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "memory/file_io.h"

namespace tide {
namespace {

constexpr unsigned kDepth = 16;                           // requests under way
constexpr std::int64_t kChunk = std::int64_t{256} << 10;  // bytes of one

// A mapped part of the ring, unmapped at the end.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int ring, std::size_t bytes, std::uint64_t offset)
      : memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
                       static_cast<off_t>(offset))),
        bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept : memory_(std::exchange(other.memory_, MAP_FAILED)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (valid()) ::munmap(memory_, bytes_);
  }
  [[nodiscard]] bool valid() const { return memory_ != MAP_FAILED; }
  template <typename T>
  [[nodiscard]] T* at(std::uint32_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_) + offset);
  }

 private:
  void* memory_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

// One submission and completion queue, for one thread.
class Ring {
 public:
  Ring() {
    io_uring_params params{};
    ring_ = static_cast<int>(::syscall(__NR_io_uring_setup, kDepth, &params));
    if (ring_ < 0) return;
    // The last of these came with plain reads and writes (Linux 5.6).
    constexpr unsigned kNeeded = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;
    if ((params.features & kNeeded) != kNeeded) return;
    const std::size_t submission = params.sq_off.array + params.sq_entries * sizeof(std::uint32_t);
    const std::size_t completion = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
    queues_ = Mapping(ring_, std::max(submission, completion), IORING_OFF_SQ_RING);
    requests_ = Mapping(ring_, params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
    offsets_ = params;
  }
  ~Ring() {
    if (ring_ >= 0) ::close(ring_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] bool valid() const { return queues_.valid() && requests_.valid(); }

  // Moves up to kDepth chunks at once. Returns how many bytes from the start are done, or a
  // negative errno if none are; nothing is under way any more then.
  [[nodiscard]] std::int64_t transfer(std::uint8_t operation, int file, std::byte* memory, std::int64_t bytes,
                                      std::int64_t offset) {
    if (broken_ != 0) return -broken_;
    bytes = std::min<std::int64_t>(bytes, kChunk * kDepth);
    const auto count = static_cast<unsigned>((bytes + kChunk - 1) / kChunk);
    for (unsigned i = 0; i < count; ++i) {
      const std::int64_t first = i * kChunk;
      request(i, operation, file, memory + first, std::min(kChunk, bytes - first), offset + first);
    }
    std::atomic_ref<std::uint32_t> tail(*queues_.at<std::uint32_t>(offsets_.sq_off.tail));
    tail.store(tail.load(std::memory_order_relaxed) + count, std::memory_order_release);
    if (const int error = submit_and_wait(count); error != 0) return -error;

    std::int64_t done = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (results_[i] < 0) return done > 0 ? done : results_[i];
      done += results_[i];
      if (results_[i] < std::min(kChunk, bytes - i * kChunk)) break;
    }
    return done;
  }

 private:
  void request(unsigned index, std::uint8_t operation, int file, std::byte* memory, std::int64_t bytes,
               std::int64_t offset) {
    const std::uint32_t tail = *queues_.at<std::uint32_t>(offsets_.sq_off.tail);  // only we write it
    const std::uint32_t slot = (tail + index) & *queues_.at<std::uint32_t>(offsets_.sq_off.ring_mask);
    io_uring_sqe& entry = requests_.at<io_uring_sqe>(0)[slot];
    entry = {};
    entry.opcode = operation;
    entry.fd = file;
    entry.addr = reinterpret_cast<std::uint64_t>(memory);
    entry.len = static_cast<std::uint32_t>(bytes);
    entry.off = static_cast<std::uint64_t>(offset);
    entry.user_data = index;
    queues_.at<std::uint32_t>(offsets_.sq_off.array)[slot] = slot;
  }

  // Gives all requests to the kernel and takes their results: 0 or an errno. Returns only
  // when none of them is under way. A ring that refused a request is not used again.
  [[nodiscard]] int submit_and_wait(unsigned count) {
    unsigned submitted = 0;
    unsigned finished = 0;
    while (finished < count) {
      const long taken =
          ::syscall(__NR_io_uring_enter, ring_, count - submitted, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
      const bool again = taken < 0 && (errno == EINTR || errno == EAGAIN || errno == EBUSY);
      if (taken < 0 && !again) {
        broken_ = errno;
        count = submitted;
      }
      if (taken > 0) submitted += static_cast<unsigned>(taken);
      finished += collect();
    }
    return broken_;
  }

  unsigned collect() {
    std::atomic_ref<std::uint32_t> head(*queues_.at<std::uint32_t>(offsets_.cq_off.head));
    const std::atomic_ref<std::uint32_t> tail(*queues_.at<std::uint32_t>(offsets_.cq_off.tail));
    const std::uint32_t mask = *queues_.at<std::uint32_t>(offsets_.cq_off.ring_mask);
    const std::uint32_t first = head.load(std::memory_order_relaxed);
    const std::uint32_t end = tail.load(std::memory_order_acquire);
    for (std::uint32_t i = first; i != end; ++i) {
      const io_uring_cqe& entry = queues_.at<io_uring_cqe>(offsets_.cq_off.cqes)[i & mask];
      results_[static_cast<std::size_t>(entry.user_data)] = entry.res;
    }
    head.store(end, std::memory_order_release);
    return end - first;
  }

  int ring_ = -1;
  int broken_ = 0;  // the errno of a refusal
  io_uring_params offsets_{};
  Mapping queues_, requests_;
  std::array<std::int32_t, kDepth> results_{};
};

class UringIo final : public FileIo {
 public:
  [[nodiscard]] bool valid() const { return reads_.valid() && writes_.valid(); }
  [[nodiscard]] std::string_view name() const override { return "io_uring"; }
  [[nodiscard]] int reserve(int file, std::int64_t bytes) override { return ::posix_fallocate(file, 0, bytes); }
  [[nodiscard]] std::int64_t read(int file, std::byte* to, std::int64_t bytes, std::int64_t offset) override {
    return reads_.transfer(IORING_OP_READ, file, to, bytes, offset);
  }
  [[nodiscard]] std::int64_t write(int file, const std::byte* from, std::int64_t bytes, std::int64_t offset) override {
    return writes_.transfer(IORING_OP_WRITE, file, const_cast<std::byte*>(from), bytes, offset);  // only reads it
  }

 private:
  Ring reads_, writes_;  // one for each of the two threads
};

}  // namespace

std::unique_ptr<FileIo> make_uring_io() {
  auto io = std::make_unique<UringIo>();
  if (!io->valid()) return nullptr;
  return io;
}

}  // namespace tide
