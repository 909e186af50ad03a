// Jobs of several ranks that are threads, and what each of them has trained.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "cluster/threads.h"
#include "train/plan_network.h"
#include "train/small_session.h"

namespace tide::test {

// What does not depend on the other samples of a batch; dropout depends on the sample.
inline NetworkPtr independent_network() {
  Builder net("independent");
  Value x = net.input({1, 1, 8, 8}, "in");
  x = net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "conv1");
  x = net.max_pool(net.relu(x, "relu1"), {.window = Window::square(2, 2)}, "pool1");
  x = net.convolution(x, {.channels = 5, .window = Window::square(3, 1, 1)}, "conv2");
  x = net.dropout(net.relu(x, "relu2"), {.rate = 0.3}, "dropout");
  x = net.fully_connected(x, {.channels = 10}, "fc");
  net.softmax_cross_entropy(x, {}, "softmax");
  return std::make_shared<const Network>(std::move(net).build());
}

struct RankJob {
  NetworkPtr network = independent_network();
  std::int64_t global_batch = 8, samples = 21, epochs = 2, validation = 19;
  SessionOptions options = session_options();
};

struct Trained {
  std::vector<NamedTensor> state;
  std::vector<TrainingObserver::StepInfo> steps;
  std::optional<Session::Evaluation> validation;
  Plan plan;
};

// By rank.
inline std::vector<Trained> train_on(int ranks, const RankJob& job) {
  std::vector<Trained> results(static_cast<std::size_t>(ranks));
  on_thread_ranks(ranks, [&](Communicator& communicator) {
    SessionOptions options = job.options;
    if (ranks > 1) options.ranks.communicator = &communicator;
    options.ranks.bucket = Bytes(1000);
    TrainingOptions training{.batch = job.global_batch / ranks, .epochs = job.epochs};
    training.schedule.base = 0.05;
    const DatasetPtr data = first_digits(job.samples), validation = first_digits(job.validation);
    const SessionPtr session =
        open_session(job.network, training_variants(training, *data, validation.get(), options.ranks), options);
    Recorder recorder;
    const TrainingReport report = train(*session, training, *data, validation.get(), recorder);
    results[static_cast<std::size_t>(communicator.rank())] = {session->state(), recorder.steps, report.validation,
                                                              session->plan({training.batch, true})};
  });
  return results;
}

inline double distance(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  double most = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t t = 0; t < a.size(); ++t) {
    EXPECT_EQ(a[t].name, b[t].name);
    for (std::size_t i = 0; i < a[t].values.size(); ++i)
      most = std::max(most, static_cast<double>(std::abs(a[t].values[i] - b[t].values[i])));
  }
  return most;
}

inline void expect_one_model(const std::vector<Trained>& ranks) {
  for (const Trained& rank : ranks) EXPECT_TRUE(same(rank.state, ranks[0].state));
}

}  // namespace tide::test
