// The same ranks, for those who change some of what they do: every call goes on to another communicator.
#pragma once

#include "cluster/communicator.h"

namespace tide {

class ForwardingCommunicator : public Communicator {
 public:
  // Which outlives it.
  explicit ForwardingCommunicator(Communicator& real) : real_(real) {}

  [[nodiscard]] int rank() const override { return real_.rank(); }
  [[nodiscard]] int size() const override { return real_.size(); }
  [[nodiscard]] bool in_one_process() const override { return real_.in_one_process(); }
  [[nodiscard]] const std::string& host(int rank) const override { return real_.host(rank); }
  void all_reduce(std::span<float> values) override { real_.all_reduce(values); }
  void all_reduce(std::span<double> values) override { real_.all_reduce(values); }
  void reduce_scatter(std::span<float> values) override { real_.reduce_scatter(values); }
  void all_gather(std::span<std::byte> values) override { real_.all_gather(values); }
  void broadcast(std::span<std::byte> values, int root) override { real_.broadcast(values, root); }
  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) override {
    real_.exchange(peer, send, receive);
  }
  void barrier() override { real_.barrier(); }
  [[nodiscard]] std::vector<std::string> gather(const std::string& text) override { return real_.gather(text); }
  [[nodiscard]] std::unique_ptr<Communicator> duplicate() override { return real_.duplicate(); }
  void interrupt() noexcept override { real_.interrupt(); }

 protected:
  [[nodiscard]] Communicator& real() const { return real_; }

 private:
  Communicator& real_;
};

}  // namespace tide
