// Several ranks train one model: each with its part of every batch, gradients summed over all.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backend/reference/interpreter.h"
#include "step/build.h"
#include "train/initialize.h"
#include "train/rank_jobs.h"
#include "train/share.h"

namespace tide {
namespace {

using test::distance;
using test::expect_one_model;
using test::RankJob;
using test::train_on;
using test::Trained;

TEST(Ranks, ShareOutEverySampleOnce) {
  for (std::int64_t samples = 0; samples < 20; ++samples)
    for (std::int64_t ranks = 1; ranks < 9; ++ranks) {
      std::int64_t next = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const SampleRange part = share_of(samples, rank, ranks);
        EXPECT_EQ(part.first, next);
        EXPECT_LE(part.count, share_of(samples, 0, ranks).count);
        next += part.count;
      }
      EXPECT_EQ(next, samples);
    }
}

// Whatever is left for the last batch of an epoch: parts of different size, and ranks that get nothing.
TEST(Ranks, GiveTheModelOfOneProcess) {
  for (const std::int64_t samples : {24, 21, 18, 17}) {
    RankJob job;
    job.samples = samples;
    const Trained alone = train_on(1, job)[0];
    for (const int ranks : {2, 4}) {
      const std::vector<Trained> together = train_on(ranks, job);
      expect_one_model(together);
      EXPECT_LT(distance(together[0].state, alone.state), 2e-6) << samples << " samples on " << ranks;
      ASSERT_EQ(together[0].steps.size(), alone.steps.size());
      for (std::size_t s = 0; s < alone.steps.size(); ++s) {
        EXPECT_NEAR(together[0].steps[s].loss, alone.steps[s].loss, 1e-5);
        EXPECT_EQ(together[0].steps[s].loss, together[1].steps[s].loss);
      }
      EXPECT_NEAR(together[0].validation->loss, alone.validation->loss, 1e-5);
      EXPECT_EQ(together[0].validation->accuracy, alone.validation->accuracy);
    }
  }
}

TEST(Ranks, ClipByTheNormOfAllGradients) {
  RankJob job;
  job.options.optimizer.clip_norm = 0.1;
  const Trained alone = train_on(1, job)[0];
  EXPECT_LT(distance(train_on(4, job)[0].state, alone.state), 2e-6);
}

// Within any budget, and with any policy, the same bits: a plan changes when gradients are summed, never what.
TEST(Ranks, GiveTheSameBitsUnderEveryPolicy) {
  RankJob job;
  job.network = test::small_network();
  const std::vector<Trained> expected = train_on(2, job);
  SharedLink link(50e6);  // of both
  for (const Policy& policy : policies()) {
    RankJob within = job;
    within.options.policy = policy.name;
    within.options.executor.guard = false;  // lanes side by side
    within.options.executor.shared_link = &link;
    const auto ranks = make_thread_ranks(2);
    within.options.ranks = {.communicator = ranks[0].get(), .bucket = Bytes(1000)};
    const auto answer = plan_network(job.network, {4, true}, within.options);
    within.options.planner.memory[Tier::device] = answer.floor[Tier::device] + Bytes(2048);
    const std::vector<Trained> together = train_on(2, within);
    // Running statistics are each rank's own.
    EXPECT_TRUE(test::same(together[0].state, expected[0].state)) << policy.name;
    EXPECT_TRUE(test::same(together[1].state, expected[1].state)) << policy.name;
  }
}

TEST(Ranks, MayCutTheirBatches) {
  RankJob job;
  const Trained alone = train_on(1, job)[0];
  job.options.planner.batch = SubBatches{.samples = 2};
  const std::vector<Trained> together = train_on(2, job);
  expect_one_model(together);
  EXPECT_LT(distance(together[0].state, alone.state), 2e-6);
}

TEST(Ranks, SumInBf16WhenAsked) {
  RankJob job;
  const Trained exact = train_on(4, job)[0];
  job.options.ranks.wire = DataType::bf16;
  const std::vector<Trained> rounded = train_on(4, job);
  expect_one_model(rounded);
  EXPECT_GT(distance(rounded[0].state, exact.state), 0);
  EXPECT_LT(distance(rounded[0].state, exact.state), 1e-2);
}

TEST(Ranks, ShareTheirStatisticsWhenAsked) {
  RankJob job;
  job.network = test::small_network();
  job.samples = 24;
  const Trained alone = train_on(1, job)[0];
  job.options.ranks.sync_batch_norm = true;
  for (const int ranks : {2, 4}) {
    const std::vector<Trained> together = train_on(ranks, job);
    expect_one_model(together);  // running statistics too
    EXPECT_LT(distance(together[0].state, alone.state), 1e-5) << ranks;
  }
}

// Whatever the ranks, the policy, and what is left for the last batch.
TEST(Ranks, GiveTheSameBitsInAFixedOrder) {
  for (const std::int64_t leaves : {4, 8}) {
    RankJob job;
    job.network = test::small_network();
    job.global_batch = 16;
    job.samples = 29;
    job.options.ranks.leaves = leaves;
    const Trained alone = train_on(1, job)[0];
    for (const int ranks : {1, 2, 4}) {
      const std::vector<Trained> together = train_on(ranks, job);
      expect_one_model(together);
      EXPECT_TRUE(test::same(together[0].state, alone.state)) << ranks << " ranks, " << leaves << " leaves";
      for (std::size_t s = 0; s < alone.steps.size(); ++s) EXPECT_EQ(together[0].steps[s].loss, alone.steps[s].loss);
    }
    RankJob within = job;
    within.options.policy = "auto";
    within.options.executor.guard = false;
    const auto ranks = make_thread_ranks(2);
    within.options.ranks.communicator = ranks[0].get();
    within.options.ranks.bucket = Bytes(1000);
    const auto answer = plan_network(job.network, {8, true}, within.options);
    within.options.planner.memory[Tier::device] = answer.floor[Tier::device] + Bytes(2048);
    EXPECT_TRUE(test::same(train_on(2, within)[0].state, alone.state));
    // And nearly those of one step over all samples, where the last batch is as large.
    RankJob whole = job;
    whole.options.ranks.leaves = 0;
    whole.samples = job.samples = 16;
    EXPECT_LT(distance(train_on(1, whole)[0].state, train_on(2, job)[0].state), 1e-5);
  }
}

TEST(Ranks, GiveTheSameBitsAHundredTimes) {
  RankJob job;
  job.network = test::small_network();
  job.global_batch = 16;
  job.samples = 16;
  job.epochs = 2;
  job.validation = 1;
  job.options.executor.guard = false;
  job.options.ranks.leaves = 8;
  const Trained first = train_on(4, job)[0];
  for (int repeat = 0; repeat < 100; ++repeat) ASSERT_TRUE(test::same(train_on(4, job)[0].state, first.state));
}

// What a step adds to the parameters, over its rate; by one process, or by several, in floats.
std::vector<std::vector<double>> gradients_of(int ranks, RankJob job) {
  const double rate = 4096;  // so that what the parameters were hardly rounds it
  std::vector<std::vector<double>> result;
  on_thread_ranks(ranks, [&](Communicator& communicator) {
    SessionOptions options = job.options;
    if (ranks > 1) options.ranks.communicator = &communicator;
    options.ranks.bucket = Bytes(1000);
    options.optimizer = {.kind = OptimizerKind::sgd};
    const std::int64_t batch = job.global_batch / ranks;
    const test::SessionPtr session = test::open_session(job.network, {{batch, true}}, options);
    std::vector<NamedTensor> before = session->state();
    std::vector<std::int64_t> samples(static_cast<std::size_t>(batch));
    std::iota(samples.begin(), samples.end(), batch * communicator.rank());
    session->run({batch, true}, *test::first_digits(job.global_batch), samples, rate);
    const std::vector<NamedTensor> after = session->state();
    if (communicator.rank() != 0) return;
    for (std::size_t t = 0; t < after.size(); ++t) {
      result.emplace_back();
      for (std::size_t i = 0; i < after[t].values.size(); ++i)
        result.back().push_back((static_cast<double>(before[t].values[i]) - static_cast<double>(after[t].values[i])) /
                                rate);
    }
  });
  return result;
}

// By one process in doubles.
std::vector<std::vector<double>> exact_gradients(const RankJob& job) {
  StepOptions options{.batch = job.global_batch, .optimizer = {.kind = OptimizerKind::sgd}};
  const auto step = std::make_shared<const Step>(build_step(job.network, options));
  ReferenceInterpreter interpreter(step);
  const DatasetPtr data = test::first_digits(job.global_batch);
  std::vector<float> sample(64);
  std::vector<std::int32_t> label(1);
  std::vector<double> input, labels;
  for (std::int64_t s = 0; s < job.global_batch; ++s) {
    data->read(s, sample, label);
    input.insert(input.end(), sample.begin(), sample.end());
    labels.push_back(label[0]);
  }
  std::vector<const Storage*> parameters;
  for (const Storage& storage : step->storages) {
    if (!storage.entry.valid()) continue;
    const Tensor& tensor = step->tensor(storage.entry);
    if (tensor.tensor_class == TensorClass::input)
      interpreter.set(storage.entry, tensor.role == Role::x ? input : labels);
    if (!storage.persistent) continue;
    const std::vector<float> values = initial_values(*job.network, tensor.parameter, job.options.seed);
    interpreter.set_logical(storage.entry, std::vector<double>(values.begin(), values.end()));
    parameters.push_back(&storage);
  }
  interpreter.run({.seed = job.options.seed, .learning_rate = 1, .global_batch = job.global_batch});
  std::vector<std::vector<double>> result;
  for (const Storage* const storage : parameters) {
    result.push_back(interpreter.get_logical(storage->entry));
    const std::vector<double> after = interpreter.get_logical(storage->exit);
    for (std::size_t i = 0; i < after.size(); ++i) result.back()[i] -= after[i];
  }
  return result;
}

double distance(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double sum = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t t = 0; t < a.size(); ++t)
    for (std::size_t i = 0; i < a[t].size(); ++i) sum += (a[t][i] - b[t][i]) * (a[t][i] - b[t][i]);
  return std::sqrt(sum);
}

TEST(Ranks, HaveGradientsAsGoodAsThoseOfOneProcess) {
  RankJob job;
  job.global_batch = 16;
  const std::vector<std::vector<double>> exact = exact_gradients(job);
  const double alone = distance(gradients_of(1, job), exact);
  EXPECT_GT(alone, 0);
  EXPECT_LT(alone, 1e-5);
  for (const int ranks : {2, 4})
    for (const Shard shard : {Shard::none, Shard::optimizer, Shard::parameters}) {
      job.options.ranks.shard = shard;
      job.options.ranks.least_to_shard = Bytes(100);
      EXPECT_LE(distance(gradients_of(ranks, job), exact), 2 * alone) << ranks << " ranks, " << shard_name(shard);
    }
}

TEST(Ranks, RefuseWhatHasNoFixedOrder) {
  RankJob job;
  job.options.ranks.leaves = 6;
  EXPECT_THROW(static_cast<void>(train_on(1, job)), Error);
  job.options.ranks.leaves = 2;
  EXPECT_THROW(static_cast<void>(train_on(4, job)), Error);
  job.options.ranks.leaves = 8;
  job.options.ranks.wire = DataType::bf16;
  EXPECT_THROW(static_cast<void>(train_on(2, job)), Error);
  job.options.ranks.wire = DataType::f32;
  job.options.deterministic = false;
  EXPECT_THROW(static_cast<void>(train_on(2, job)), Error);
}

TEST(Ranks, StopTogether) {
  on_thread_ranks(3, [](Communicator& communicator) {
    SessionOptions options = test::session_options();
    options.ranks.communicator = &communicator;
    const TrainingOptions training{.batch = 2, .epochs = 3};
    const DatasetPtr data = test::first_digits(30);
    const test::SessionPtr session = test::open_session(
        test::independent_network(), training_variants(training, *data, nullptr, options.ranks), options);
    test::Recorder recorder(communicator.rank() == 2 ? 4 : -1);
    const TrainingReport report = train(*session, training, *data, nullptr, recorder, recorder.stop);
    EXPECT_TRUE(report.interrupted);
    EXPECT_EQ(report.steps, 5);  // agreed on with the sums of the next step
  });
}

TEST(Ranks, TakeUpWhatTheFirstOneHas) {
  on_thread_ranks(3, [](Communicator& communicator) {
    SessionOptions options = test::session_options();
    options.ranks.communicator = &communicator;
    options.seed = static_cast<std::uint64_t>(communicator.rank()) + 1;
    const test::SessionPtr session = test::open_session(test::small_network(), {{2, true}}, options);
    session->restore_from_first(communicator.rank() == 0 ? session->state() : std::vector<NamedTensor>(), 0);
    std::string own = std::to_string(session->weights_hash());
    for (const std::string& other : communicator.gather(own)) EXPECT_EQ(other, own);
  });
}

}  // namespace
}  // namespace tide
