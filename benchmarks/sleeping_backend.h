// A device that computes nothing and sleeps for as long as a modelled one takes, many times slower than life, so that
// neither the time to wake up nor a small number of cores shows.
#pragma once

#include <chrono>
#include <thread>

#include "backend/backend.h"
#include "cost/model.h"

namespace tide {

// Everything but time is the null backend's, and copies move nothing: a link that is slowed down has their time.
class SleepingBackend final : public Backend {
 public:
  SleepingBackend(const CostModel& cost, double slowdown) : cost_(cost), slowdown_(slowdown) {}
  [[nodiscard]] std::string_view name() const override { return null_->name(); }
  [[nodiscard]] std::string description() const override { return null_->description(); }
  void annotate(Step& step) const override { null_->annotate(step); }
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
  void write_tensor(const Step& step, TensorId tensor, std::span<const float> logical, std::byte* address) override {
    null_->write_tensor(step, tensor, logical, address);
  }
  void read_tensor(const Step& step, TensorId tensor, const std::byte* address, std::span<float> logical) override {
    null_->read_tensor(step, tensor, address, logical);
  }
  [[nodiscard]] std::byte* allocate(Bytes bytes) override { return null_->allocate(bytes); }
  void release(std::byte* memory, Bytes bytes) noexcept override { null_->release(memory, bytes); }
  void copy(std::byte* /*to*/, const std::byte* /*from*/, Bytes /*bytes*/) override {}

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  static constexpr double kWakeSeconds = 1e-3;  // what a thread may need to wake up; longer waits are real ones

  const CostModel& cost_;
  double slowdown_;
  Clock::time_point free_at_;
  std::unique_ptr<Backend> null_ = make_backend("null");
};

}  // namespace tide
