// A network and data that are quick on any backend, and sessions over them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <numeric>

#include "network/builder.h"
#include "support/error_of.h"
#include "support/plain_session.h"
#include "support/temporary_file.h"
#include "train/session.h"
#include "train/trainer.h"

namespace tide::test {

// With everything that has state or chance in it: batch norm, dropout, a max pool.
inline NetworkPtr small_network() {
  Builder net("small");
  Value x = net.input({1, 1, 8, 8}, "in");
  x = net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "conv1");
  x = net.relu(net.batch_norm(x, {}, "norm1"), "relu1");
  x = net.max_pool(x, {.window = Window::square(2, 2)}, "pool1");
  x = net.convolution(x, {.channels = 5, .window = Window::square(3, 1, 1)}, "conv2");
  x = net.dropout(net.relu(x, "relu2"), {.rate = 0.3}, "dropout");
  x = net.fully_connected(x, {.channels = 10}, "fc");
  net.softmax_cross_entropy(x, {}, "softmax");
  return std::make_shared<const Network>(std::move(net).build());
}

inline DatasetPtr first_digits(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return subset(digits(), std::move(indices), "first digits");
}

inline bool has_cpu() {
  try {
    static_cast<void>(make_backend("cpu"));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The plainest way to train, so that a test adds what it is about: everything on the device, layers as they are,
// modelled times. Guarded, on one thread, on the cpu where this build has it.
inline SessionOptions session_options() {
  SessionOptions options = plain_session();
  options.backend = has_cpu() ? "cpu" : "reference";
  options.threads = 1;
  options.executor.guard = true;
  return options;
}

using SessionPtr = std::unique_ptr<Session>;

// REQUIRES: the budget suffices.
inline SessionPtr open_session(const NetworkPtr& network, const std::vector<StepVariant>& variants,
                               const SessionOptions& options = session_options()) {
  auto opened = Session::open(network, variants, options);
  if (const PlanResult* const result = std::get_if<PlanResult>(&opened))
    throw Error("{} does not fit: {} bytes of {}", result->bottleneck_task, result->floor[result->short_of].count(),
                tier_name(result->short_of));
  return std::move(std::get<SessionPtr>(opened));
}

// Trains on samples 0.. of the data, `batch` at a time; returns the last loss.
inline double run_steps(Session& session, std::int64_t batch, int steps, double rate = 0.05) {
  const DatasetPtr data = digits();
  std::vector<std::int64_t> samples(static_cast<std::size_t>(batch));
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    std::iota(samples.begin(), samples.end(), i * batch);
    loss = session.run({batch, true}, *data, samples, rate).loss;
  }
  return loss;
}

inline ParameterId parameter_named(const Network& network, std::string_view name) {
  for (std::size_t p = 0; p < network.parameters.size(); ++p)
    if (network.parameters[p].name == name) return ParameterId(p);
  throw Error("there is no parameter '{}'", name);
}

inline bool same(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].shape != b[i].shape || a[i].values != b[i].values) return false;
  return true;
}

// Remembers what it was told, and can ask to stop.
class Recorder final : public TrainingObserver {
 public:
  explicit Recorder(std::int64_t stop_after = -1) : stop_after_(stop_after) {}
  void on_step(const StepInfo& info) override {
    steps.push_back(info);
    if (info.step == stop_after_) stop = true;
  }
  void on_epoch(const EpochInfo& info) override { epochs.push_back(info); }

  std::vector<StepInfo> steps;
  std::vector<EpochInfo> epochs;
  std::atomic<bool> stop{false};

 private:
  std::int64_t stop_after_;
};

}  // namespace tide::test
