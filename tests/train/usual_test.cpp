// Rates that are usual: who asks for none trains, and goes nowhere else than down.
#include "train/usual.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/small_session.h"
#include "zoo/zoo.h"

namespace tide::test {
namespace {

constexpr OptimizerOptions kMomentum{.kind = OptimizerKind::momentum};

double usual(std::string_view model, const OptimizerOptions& optimizer, std::int64_t batch) {
  return usual_learning_rate(make_model(model), optimizer, batch);
}

TEST(UsualRate, IsThatOfTheDigitsFrom32SamplesOn) {
  for (const std::int64_t batch : {32, 64, 4096}) EXPECT_EQ(usual("digits", kMomentum, batch), 0.05);
  EXPECT_EQ(usual("resnet50", kMomentum, 128), 0.05);
}

TEST(UsualRate, IsSmallerForFewSamplesAndForNetworksThatDoNotNormalize) {
  EXPECT_EQ(usual("digits", kMomentum, 16), 0.025);
  EXPECT_EQ(usual("vgg16", kMomentum, 32), 0.05 / 16);
  EXPECT_EQ(usual("lenet", kMomentum, 16), 0.002);
  EXPECT_LT(usual("digits", {.kind = OptimizerKind::adam}, 32), 0.01);
}

TEST(UsualRate, IsWhatTrainTakesWhereNobodyNamesOne) {
  const NetworkPtr network = small_network();
  TrainingOptions options{.batch = 8, .steps = 3};
  const DatasetPtr data = first_digits(64);
  const SessionPtr session = open_session(network, training_variants(options, *data, nullptr));
  Recorder recorder;
  train(*session, options, *data, nullptr, recorder, recorder.stop);
  ASSERT_EQ(recorder.steps.size(), 3U);
  for (const auto& step : recorder.steps)
    EXPECT_EQ(step.learning_rate, usual_learning_rate(*network, session->optimizer(), 8));
}

// On few samples again and again, which a network that trains learns by heart.
void expect_to_learn(const std::string& model, std::optional<Shape> sample, OptimizerKind kind, std::int64_t batch,
                     std::int64_t steps) {
  SCOPED_TRACE(fmt::format("{}, {}, batch {}", model, optimizer_name(kind), batch));
  Network made = make_model(model, sample);
  for (Layer& layer : made.layers)  // chance would hide what the rate does
    if (auto* const dropout = std::get_if<DropoutOptions>(&layer.options)) dropout->rate = 0;
  const auto network = std::make_shared<const Network>(std::move(made));
  const DatasetPtr data = synthetic({.sample = network->layers[0].outputs[0], .classes = 10, .size = batch});
  SessionOptions session_options = test::session_options();
  session_options.optimizer.kind = kind;
  session_options.executor.guard = false;
  TrainingOptions options{.batch = batch, .steps = steps};
  const SessionPtr session = open_session(network, training_variants(options, *data, nullptr), session_options);
  Recorder recorder;
  const TrainingReport report = train(*session, options, *data, nullptr, recorder, recorder.stop);
  const double chance = std::log(10.0);
  for (const auto& step : recorder.steps) EXPECT_LT(step.loss, 3 * chance) << step.step;
  EXPECT_LT(report.loss, recorder.steps.front().loss);
}

TEST(UsualRate, TrainsWhatDoesNotNormalize) {
  if (!has_cpu()) GTEST_SKIP() << "too slow without the cpu backend";
  for (const std::int64_t batch : {2, 16, 64}) {
    expect_to_learn("lenet@10", {}, OptimizerKind::momentum, batch, 20);
    expect_to_learn("lenet@10", {}, OptimizerKind::adam, batch, 20);
  }
  expect_to_learn("vgg16@10", Shape{1, 3, 32, 32}, OptimizerKind::momentum, 16, 10);
  expect_to_learn("squeezenet@10", Shape{1, 3, 64, 64}, OptimizerKind::momentum, 16, 20);
}

TEST(UsualRate, TrainsWhatNormalizes) {
  if (!has_cpu()) GTEST_SKIP() << "too slow without the cpu backend";
  for (const OptimizerKind kind : {OptimizerKind::momentum, OptimizerKind::sgd, OptimizerKind::adamw})
    for (const std::int64_t batch : {4, 32}) expect_to_learn("digits", {}, kind, batch, 20);
  for (const char* model : {"resnet18@10", "mobilenet-v2@10", "shufflenet-v2@10"})
    expect_to_learn(model, Shape{1, 3, 32, 32}, OptimizerKind::momentum, 16, 10);
}

}  // namespace
}  // namespace tide::test
