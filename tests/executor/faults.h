// A backend and a file interface that work until they are told to fail, count what is held,
// and can take their time over copies so that lanes meet in ever new orders.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "backend/forwarding_backend.h"
#include "memory/file_io.h"

namespace tide::test {

// Counts calls; the one with number `fail_at` (from 0) is to fail.
class Trigger {
 public:
  // Counting starts again. Below 0: nothing fails.
  void arm(std::int64_t fail_at) {
    calls_ = 0;
    fail_at_ = fail_at;
  }
  [[nodiscard]] bool fires() { return calls_.fetch_add(1) == fail_at_.load(); }
  [[nodiscard]] std::int64_t calls() const { return calls_; }

 private:
  std::atomic<std::int64_t> calls_{0}, fail_at_{-1};
};

class FaultyBackend final : public ForwardingBackend {
 public:
  explicit FaultyBackend(std::string_view name) : ForwardingBackend(make_backend(name, 1)) {}

  Trigger device_allocations, host_allocations, copies, kernels;
  std::atomic<std::int64_t> held_bytes{0};
  std::int64_t longest_delay_microseconds = 0;  // of copies

  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t algorithm) override {
    return [this, kernel = ForwardingBackend::prepare(step, task, algorithm)](const Launch& launch) {
      if (kernels.fires()) throw Error("the kernel was told to fail");
      kernel(launch);
    };
  }
  [[nodiscard]] std::byte* allocate(Bytes bytes) override {
    if (device_allocations.fires()) throw Error("no device memory: told to fail");
    std::byte* const memory = ForwardingBackend::allocate(bytes);
    held_bytes += bytes.count();
    return memory;
  }
  void release(std::byte* memory, Bytes bytes) noexcept override {
    ForwardingBackend::release(memory, bytes);
    held_bytes -= bytes.count();
  }
  [[nodiscard]] std::byte* allocate_host(Bytes bytes) override {
    if (host_allocations.fires()) throw Error("no host memory: told to fail");
    std::byte* const memory = ForwardingBackend::allocate_host(bytes);
    held_bytes += bytes.count();
    return memory;
  }
  void release_host(std::byte* memory, Bytes bytes) noexcept override {
    ForwardingBackend::release_host(memory, bytes);
    held_bytes -= bytes.count();
  }
  void copy(std::byte* to, const std::byte* from, Bytes bytes) override {
    if (copies.fires()) throw Error("the copy was told to fail");
    delay();
    ForwardingBackend::copy(to, from, bytes);
    delay();
  }

 private:
  void delay() {
    if (longest_delay_microseconds == 0) return;
    // Any number will do, as long as it varies.
    const std::uint64_t number = random_.fetch_add(0x9e3779b97f4a7c15U);
    const auto share = static_cast<std::int64_t>((number ^ (number >> 29U)) % 8);
    if (share > 2) std::this_thread::sleep_for(std::chrono::microseconds(longest_delay_microseconds * share / 8));
  }

  std::atomic<std::uint64_t> random_{1};
};

// Fails, or moves fewer bytes than asked for.
class FaultyIo final : public FileIo {
 public:
  struct Controls {
    Trigger reads, writes;
    std::atomic<int> error{EIO};      // what a triggered call returns; 0: that nothing was moved
    std::atomic<bool> halves{false};  // every call moves half of what it is asked for
    std::atomic<int> reserve_error{0};
    std::atomic<int> interruptions{0};  // so many calls are interrupted by a signal first
  };
  FaultyIo(Controls& controls, std::unique_ptr<FileIo> real) : controls_(controls), real_(std::move(real)) {}

  [[nodiscard]] std::string_view name() const override { return "faulty"; }
  [[nodiscard]] int reserve(int file, std::int64_t bytes) override {
    return controls_.reserve_error != 0 ? controls_.reserve_error.load() : real_->reserve(file, bytes);
  }
  [[nodiscard]] std::int64_t read(int file, std::byte* to, std::int64_t bytes, std::int64_t offset) override {
    if (interrupted()) return -EINTR;
    if (controls_.reads.fires()) return -controls_.error;
    return real_->read(file, to, share(bytes), offset);
  }
  [[nodiscard]] std::int64_t write(int file, const std::byte* from, std::int64_t bytes, std::int64_t offset) override {
    if (interrupted()) return -EINTR;
    if (controls_.writes.fires()) return -controls_.error;
    return real_->write(file, from, share(bytes), offset);
  }

 private:
  [[nodiscard]] bool interrupted() { return controls_.interruptions > 0 && controls_.interruptions-- > 0; }
  [[nodiscard]] std::int64_t share(std::int64_t bytes) const { return controls_.halves ? (bytes + 1) / 2 : bytes; }

  Controls& controls_;
  std::unique_ptr<FileIo> real_;
};

}  // namespace tide::test
