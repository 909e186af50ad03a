// The way between device and host memory, at the backend's own speed or slowed down to that
// of a link which the machine does not have.
#pragma once

#include <chrono>
#include <mutex>

#include "backend/backend.h"
#include "base/route.h"

namespace tide {

// A link of so many bytes per second each way that several executors copy over, such as ranks that are threads of one
// process: what goes the same way at the same time shares it, in small pieces that take turns.
class SharedLink {
 public:
  // REQUIRES: above 0.
  explicit SharedLink(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  SharedLink(const SharedLink&) = delete;
  SharedLink& operator=(const SharedLink&) = delete;

  [[nodiscard]] double bytes_per_second() const { return bytes_per_second_; }
  // Returns when so many bytes are over, mostly asleep. From any thread.
  void pass(Route way, Bytes bytes);
  static constexpr std::int64_t kPiece = std::int64_t{1} << 20;  // what is passed at once should be no more

 private:
  using Clock = std::chrono::steady_clock;
  struct Way {
    std::mutex mutex;
    Clock::time_point free_at;  // when all that was taken on is over
  };

  double bytes_per_second_;
  PerRoute<Way> ways_;
};

class Link {
 public:
  // Above 0, a copy takes at least bytes / `bytes_per_second`, each direction for itself. The
  // time is mostly slept through, so that the core is free for kernels.
  // With a shared link, which outlives this one, it takes what that leaves.
  Link(Backend& backend, double bytes_per_second, SharedLink* shared = nullptr)
      : backend_(backend), bytes_per_second_(bytes_per_second), shared_(shared) {}

  // `way` is the one that it shares.
  void copy(std::byte* to, const std::byte* from, Bytes bytes, Route way = Route::out) const;

 private:
  Backend& backend_;
  double bytes_per_second_;
  SharedLink* shared_;
};

// Has the calling thread wake from sleeps and waits as soon as the system can: one that mostly
// sleeps would otherwise queue behind those that compute. Where it cannot, nothing changes.
void run_promptly();

}  // namespace tide
