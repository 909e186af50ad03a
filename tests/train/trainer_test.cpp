// The training loop: epochs, the last partial batch, interruption and resumption, divergence.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "train/checkpoint.h"
#include "train/small_session.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using test::Recorder;

// 21 samples in batches of 8: two full steps and one of 5 per epoch.
TrainingOptions training_options() {
  TrainingOptions options;
  options.batch = 8;
  options.epochs = 4;
  options.seed = 5;
  options.schedule = {.kind = ScheduleKind::cosine, .base = 0.05, .warmup_steps = 2};
  return options;
}

constexpr std::int64_t kSamples = 21, kPerEpoch = 3, kTotal = 12;

TrainingReport run(Session& session, const TrainingOptions& options, Recorder& recorder,
                   const Dataset* validation = nullptr) {
  return train(session, options, *test::first_digits(kSamples), validation, recorder, recorder.stop);
}

test::SessionPtr open_for(const TrainingOptions& options, OptimizerKind kind, const Dataset* validation = nullptr) {
  SessionOptions session = test::session_options();
  session.optimizer.kind = kind;
  session.optimizer.weight_decay = 1e-3;
  return test::open_session(test::small_network(),
                            training_variants(options, *test::first_digits(kSamples), validation), session);
}

TEST(Trainer, KnowsItsVariants) {
  const TrainingOptions options = training_options();
  const DatasetPtr data = test::first_digits(kSamples), validation = test::first_digits(19);
  const std::vector<StepVariant> all{{8, true}, {5, true}, {8, false}, {3, false}};
  EXPECT_EQ(training_variants(options, *data, validation.get()), all);
  EXPECT_EQ(training_variants(options, *test::first_digits(24), nullptr), (std::vector<StepVariant>{{8, true}}));
  TrainingOptions few = options;
  few.steps = 2;  // never reaches the partial batch
  EXPECT_EQ(training_variants(few, *data, nullptr), (std::vector<StepVariant>{{8, true}}));
  few.steps = 3;
  EXPECT_EQ(training_variants(few, *data, nullptr), (std::vector<StepVariant>{{8, true}, {5, true}}));
  EXPECT_EQ(training_variants(options, *data, test::first_digits(3).get()),
            (std::vector<StepVariant>{{8, true}, {5, true}, {3, false}}));
  few.batch = 0;
  EXPECT_THROW(static_cast<void>(training_variants(few, *data, nullptr)), Error);
  few.batch = 22;
  EXPECT_THROW(static_cast<void>(training_variants(few, *data, nullptr)), Error);
}

TEST(Trainer, TellsWhatHappens) {
  const TrainingOptions options = training_options();
  const DatasetPtr validation = test::first_digits(19);
  const test::SessionPtr session = open_for(options, OptimizerKind::momentum, validation.get());
  Recorder recorder;
  const TrainingReport report = run(*session, options, recorder, validation.get());
  EXPECT_EQ(report.steps, kTotal);
  EXPECT_FALSE(report.interrupted);
  ASSERT_EQ(recorder.steps.size(), static_cast<std::size_t>(kTotal));
  ASSERT_EQ(recorder.epochs.size(), 4U);
  Schedule schedule = options.schedule;
  schedule.total_steps = kTotal;
  double loss = 0;
  for (std::int64_t i = 0; i < kTotal; ++i) {
    const auto& info = recorder.steps[static_cast<std::size_t>(i)];
    EXPECT_EQ(info.step, i + 1);
    EXPECT_EQ(info.epoch, i / kPerEpoch + 1);
    EXPECT_EQ(info.total_steps, kTotal);
    EXPECT_EQ(info.learning_rate, learning_rate(schedule, i));
    // An epoch's loss is the mean over its samples, of which the last batch has fewer.
    loss += info.loss * (i % kPerEpoch == 2 ? 5 : 8) / kSamples;
    if (i % kPerEpoch != 2) continue;
    EXPECT_NEAR(recorder.epochs[static_cast<std::size_t>(i / kPerEpoch)].loss, loss, 1e-9);
    loss = 0;
  }
  EXPECT_EQ(report.loss, recorder.steps.back().loss);
  const Session::Evaluation evaluation = session->evaluate(*validation, options.batch);
  ASSERT_TRUE(report.validation);
  EXPECT_EQ(report.validation->loss, evaluation.loss);
  EXPECT_EQ(report.validation->accuracy, evaluation.accuracy);
}

// Remembers which samples were read.
class Watched final : public Dataset {
 public:
  explicit Watched(DatasetPtr data) : data_(std::move(data)) {}
  [[nodiscard]] std::string name() const override { return data_->name(); }
  [[nodiscard]] std::int64_t size() const override { return data_->size(); }
  [[nodiscard]] Shape sample() const override { return data_->sample(); }
  [[nodiscard]] std::int64_t classes() const override { return data_->classes(); }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return data_->labels_per_sample(); }
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    seen.push_back(index);
    data_->read(index, values, labels);
  }
  mutable std::vector<std::int64_t> seen;

 private:
  DatasetPtr data_;
};

TEST(Trainer, EveryEpochHasEverySampleOnceInAnOrderOfItsOwn) {
  const TrainingOptions options = training_options();
  const test::SessionPtr session = open_for(options, OptimizerKind::sgd);
  const Watched data(test::first_digits(kSamples));
  Recorder recorder;
  train(*session, options, data, nullptr, recorder, recorder.stop);
  ASSERT_EQ(data.seen.size(), 4U * kSamples);
  std::set<std::vector<std::int64_t>> orders;
  for (auto epoch = data.seen.begin(); epoch != data.seen.end(); epoch += kSamples) {
    std::vector<std::int64_t> order(epoch, epoch + kSamples);
    EXPECT_TRUE(orders.insert(order).second);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<std::int64_t>(i));
  }
}

TEST(Trainer, LearnsTheDigits) {
  if (!test::has_cpu()) GTEST_SKIP() << "too slow for the reference backend";
  TrainingOptions options;
  options.batch = 32;
  options.epochs = 2;
  options.schedule.base = 0.05;
  const Split data = split(digits(), 0.2, 1);
  const auto network = std::make_shared<const Network>(make_model("digits"));
  const test::SessionPtr session =
      test::open_session(network, training_variants(options, *data.train, data.validation.get()));
  Recorder recorder;
  const TrainingReport report = train(*session, options, *data.train, data.validation.get(), recorder, recorder.stop);
  EXPECT_GT(report.validation->accuracy, 0.95);
  EXPECT_LT(recorder.epochs[1].loss, recorder.epochs[0].loss);
}

struct Resumption {
  OptimizerKind kind;
  const char* name;
  friend std::ostream& operator<<(std::ostream& out, const Resumption& c) { return out << c.name; }
};

class Resumed : public testing::TestWithParam<Resumption> {};

// Stops in the middle of an epoch, between epochs, and before the partial batch.
TEST_P(Resumed, EqualsTheUninterruptedRun) {
  const TrainingOptions options = training_options();
  const test::SessionPtr whole = open_for(options, GetParam().kind);
  Recorder all;
  run(*whole, options, all);

  for (const std::int64_t stop_after : {1, 5, 6}) {
    const test::TemporaryFile file("resume.safetensors");
    {
      const test::SessionPtr first = open_for(options, GetParam().kind);
      Recorder recorder(stop_after);
      const TrainingReport report = run(*first, options, recorder);
      EXPECT_TRUE(report.interrupted);
      EXPECT_EQ(report.steps, stop_after);
      save_checkpoint(file.path(), {first->network().name, first->steps_done(), 1, first->state()});
    }
    const Checkpoint checkpoint = load_checkpoint(file.path());
    EXPECT_EQ(checkpoint.model, "small");
    EXPECT_EQ(checkpoint.steps, static_cast<std::uint64_t>(stop_after));
    EXPECT_EQ(checkpoint.seed, 1U);
    const test::SessionPtr second = open_for(options, GetParam().kind);
    second->restore(checkpoint.tensors, checkpoint.steps);
    Recorder rest;
    const TrainingReport report = run(*second, options, rest);
    EXPECT_EQ(report.steps, kTotal);
    EXPECT_EQ(rest.steps.front().step, stop_after + 1);
    for (const auto& info : rest.steps) {
      EXPECT_EQ(info.loss, all.steps[static_cast<std::size_t>(info.step - 1)].loss);
      EXPECT_EQ(info.learning_rate, all.steps[static_cast<std::size_t>(info.step - 1)].learning_rate);
    }
    EXPECT_EQ(second->weights_hash(), whole->weights_hash());
    EXPECT_TRUE(test::same(second->state(), whole->state()));
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Resumed,
                         testing::Values(Resumption{OptimizerKind::sgd, "sgd"},
                                         Resumption{OptimizerKind::momentum, "momentum"},
                                         Resumption{OptimizerKind::nesterov, "nesterov"},
                                         Resumption{OptimizerKind::adam, "adam"},
                                         Resumption{OptimizerKind::adamw, "adamw"}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Trainer, AFinishedJobHasNothingLeftToDo) {
  const TrainingOptions options = training_options();
  const test::SessionPtr session = open_for(options, OptimizerKind::momentum);
  Recorder recorder;
  run(*session, options, recorder);
  const std::uint64_t hash = session->weights_hash();
  Recorder again;
  EXPECT_EQ(run(*session, options, again).steps, kTotal);
  EXPECT_TRUE(again.steps.empty());
  EXPECT_EQ(session->weights_hash(), hash);
}

TEST(Trainer, DivergenceStopsWithAdvice) {
  TrainingOptions options = training_options();
  options.schedule = {.base = 1e30};
  const test::SessionPtr session = open_for(options, OptimizerKind::momentum);
  Recorder recorder;
  const std::string error = test::error_of([&] { run(*session, options, recorder); });
  EXPECT_NE(error.find("diverged"), std::string::npos) << error;
  EXPECT_NE(error.find("--lr"), std::string::npos) << error;
  EXPECT_LT(recorder.steps.size(), 6U);
}

}  // namespace
}  // namespace tide
