// A device that runs by itself, without having one: its memory is hidden from the executor, and
// what is recorded runs at launch in any order that lanes and waits allow.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/forwarding_backend.h"

namespace tide::test {

class ShufflingQueue final : public StepQueue {
 public:
  explicit ShufflingQueue(const StepState& state, std::uint32_t seed) : state_(state), random_(seed) {}
  void wait(Lane lane, std::size_t op) override {
    EXPECT_TRUE(index_.contains(op)) << "a wait for an op that comes later";
    pending_[lane].insert(index_.at(op));
  }
  void run(Lane lane, std::size_t op, const Kernel& kernel, const Launch& launch) override {
    add(lane, op, [this, kernel, launch] { kernel({launch.operands, launch.workspace, &state_}); });
  }
  void call(Lane lane, std::size_t op, std::function<void()> work) override { add(lane, op, std::move(work)); }
  void copy(Lane lane, std::size_t op, std::byte* to, const std::byte* from, Bytes bytes) override {
    EXPECT_NE(lane, Lane::compute);
    add(lane, op, [=] { std::copy_n(from, bytes.size(), to); });
  }
  void finish() override { finished_ = true; }
  void launch() override {
    EXPECT_TRUE(finished_);
    std::vector<std::size_t> missing;
    std::set<std::size_t> ready;
    for (const Node& node : nodes_) missing.push_back(node.after.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (missing[i] == 0) ready.insert(i);
    while (!ready.empty()) {
      const std::size_t next = *std::next(ready.begin(), static_cast<std::ptrdiff_t>(random_() % ready.size()));
      ready.erase(next);
      nodes_[next].work();
      for (std::size_t i = next + 1; i < nodes_.size(); ++i)
        if (nodes_[i].after.contains(next) && --missing[i] == 0) ready.insert(i);
    }
  }
  void synchronize() override {}
  [[nodiscard]] Span span(std::size_t op) const override {
    return {static_cast<double>(index_.at(op)), static_cast<double>(index_.at(op)) + 1};
  }

 private:
  struct Node {
    std::function<void()> work;
    std::set<std::size_t> after;
  };
  void add(Lane lane, std::size_t op, std::function<void()> work) {
    Node node{std::move(work), std::exchange(pending_[lane], {})};
    if (const auto last = last_.find(lane); last != last_.end()) node.after.insert(last->second);
    last_[lane] = index_[op] = nodes_.size();
    nodes_.push_back(std::move(node));
  }

  const StepState& state_;
  std::mt19937 random_;
  std::vector<Node> nodes_;
  std::map<std::size_t, std::size_t> index_;
  std::map<Lane, std::size_t> last_;
  std::map<Lane, std::set<std::size_t>> pending_;
  bool finished_ = false;
};

// The kernels of the reference backend behind memory that only copies reach.
class RecordingBackend final : public ForwardingBackend {
 public:
  // Calls itself as it is told to.
  explicit RecordingBackend(std::uint32_t seed, std::string name = "reference", std::string description = "reference")
      : ForwardingBackend(make_backend("reference")),
        seed_(seed),
        name_(std::move(name)),
        description_(std::move(description)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string description() const override { return description_; }
  void annotate(Step& step) const override {
    ForwardingBackend::annotate(step);
    step.backend = description_;
  }
  [[nodiscard]] bool host_addressable() const override { return false; }
  void begin_step(const StepState& state) override { state_ = state; }
  [[nodiscard]] std::unique_ptr<StepQueue> make_queue(bool /*record_times*/) override {
    return std::make_unique<ShufflingQueue>(state_, seed_);
  }

 private:
  StepState state_;
  std::uint32_t seed_;
  std::string name_, description_;
};

}  // namespace tide::test
