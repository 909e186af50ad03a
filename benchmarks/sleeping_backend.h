// A device that computes nothing and sleeps for as long as a modelled one takes, many times slower than life, so that
// neither the time to wake up nor a small number of cores shows.
#pragma once

#include <chrono>
#include <thread>

#include "backend/forwarding_backend.h"
#include "cost/model.h"

namespace tide {

// Everything but time is the null backend's, and copies move nothing: a link that is slowed down has their time.
class SleepingBackend final : public ForwardingBackend {
 public:
  SleepingBackend(const CostModel& cost, double slowdown)
      : ForwardingBackend(make_backend("null")), cost_(cost), slowdown_(slowdown) {}
  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t algorithm) override {
    const Seconds length(slowdown_ * cost_.task_seconds(step, task, algorithm));
    return [this, length](const Launch&) {
      // As on a device whose queue is full: to have been woken late does not make the next task late.
      const Clock::time_point now = Clock::now();
      if (now - free_at_ > Seconds(kWakeSeconds)) free_at_ = now;
      free_at_ += std::chrono::duration_cast<Clock::duration>(length);
      std::this_thread::sleep_until(free_at_);
    };
  }
  void copy(std::byte* /*to*/, const std::byte* /*from*/, Bytes /*bytes*/) override {}

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  static constexpr double kWakeSeconds = 1e-3;  // what a thread may need to wake up; longer waits are real ones

  const CostModel& cost_;
  double slowdown_;
  Clock::time_point free_at_;
};

}  // namespace tide
