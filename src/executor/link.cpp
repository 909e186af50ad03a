#include "executor/link.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <thread>

namespace tide {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 20;
constexpr double kNanoseconds = 1e9;

// The kernel's sched_attr, whose header cannot be included beside the C library's.
struct SchedulerAttributes {
  std::uint32_t size = sizeof(SchedulerAttributes), policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // in nanoseconds
};

void sleep_until(const timespec& start, double seconds) {
  const double whole = std::floor(seconds);
  timespec deadline = start;
  deadline.tv_sec += static_cast<time_t>(whole);
  deadline.tv_nsec += static_cast<long>((seconds - whole) * kNanoseconds);
  if (deadline.tv_nsec >= static_cast<long>(kNanoseconds)) {
    deadline.tv_nsec -= static_cast<long>(kNanoseconds);
    ++deadline.tv_sec;
  }
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

}  // namespace

void SharedLink::pass(Route route, Bytes bytes) {
  // To have been woken late is no time that the link was free.
  constexpr std::chrono::milliseconds kWake(1);
  const auto takes = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes.count()) / bytes_per_second_));
  Way& way = ways_[route];
  Clock::time_point over;
  {
    const std::lock_guard lock(way.mutex);
    const Clock::time_point now = Clock::now();
    if (now - way.free_at > kWake) way.free_at = now;
    way.free_at += takes;
    over = way.free_at;
  }
  std::this_thread::sleep_until(over);
}

void Link::copy(std::byte* to, const std::byte* from, Bytes bytes, Route way) const {
  if (shared_ != nullptr) {
    for (std::int64_t done = 0; done < bytes.count();) {
      const std::int64_t piece = std::min(SharedLink::kPiece, bytes.count() - done);
      backend_.copy(to + done, from + done, Bytes(piece));
      shared_->pass(way, Bytes(piece));
      done += piece;
    }
    return;
  }
  if (bytes_per_second_ <= 0) return backend_.copy(to, from, bytes);
  timespec start{};
  ::clock_gettime(CLOCK_MONOTONIC, &start);
  for (std::int64_t done = 0; done < bytes.count();) {
    const std::int64_t chunk = std::min(kChunk, bytes.count() - done);
    backend_.copy(to + done, from + done, Bytes(chunk));
    done += chunk;
    sleep_until(start, static_cast<double>(done) / bytes_per_second_);
  }
}

void run_promptly() {
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  // A short slice puts a thread in front when it wakes, from Linux 6.12 on.
  SchedulerAttributes attributes;
  attributes.policy = SCHED_OTHER;
  attributes.nice = ::getpriority(PRIO_PROCESS, 0);
  attributes.runtime = 100'000;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace tide
