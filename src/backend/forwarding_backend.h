// A backend that is another one but for what a class derived from it says otherwise. For backends whose memory is the
// host's: what only a device of its own has (where it is, exported memory, queues) is not handed on.
#pragma once

#include "backend/backend.h"

namespace tide {

class ForwardingBackend : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return real_->name(); }
  [[nodiscard]] std::string description() const override { return real_->description(); }
  void annotate(Step& step) const override { real_->annotate(step); }
  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t algorithm) override {
    return real_->prepare(step, task, algorithm);
  }
  void write_tensor(const Step& step, TensorId tensor, std::span<const float> logical, std::byte* address) override {
    real_->write_tensor(step, tensor, logical, address);
  }
  void read_tensor(const Step& step, TensorId tensor, const std::byte* address, std::span<float> logical) override {
    real_->read_tensor(step, tensor, address, logical);
  }
  void pack(const Step& step, ParameterId parameter, std::span<const float> logical, std::byte* memory) const override {
    real_->pack(step, parameter, logical, memory);
  }
  void unpack(const Step& step, ParameterId parameter, const std::byte* memory,
              std::span<float> logical) const override {
    real_->unpack(step, parameter, memory, logical);
  }
  [[nodiscard]] std::byte* allocate(Bytes bytes) override { return real_->allocate(bytes); }
  void release(std::byte* memory, Bytes bytes) noexcept override { real_->release(memory, bytes); }
  [[nodiscard]] std::byte* allocate_host(Bytes bytes) override { return real_->allocate_host(bytes); }
  void release_host(std::byte* memory, Bytes bytes) noexcept override { real_->release_host(memory, bytes); }
  void copy(std::byte* to, const std::byte* from, Bytes bytes) override { real_->copy(to, from, bytes); }

 protected:
  explicit ForwardingBackend(std::unique_ptr<Backend> real) : real_(std::move(real)) {}

 private:
  std::unique_ptr<Backend> real_;
};

}  // namespace tide
