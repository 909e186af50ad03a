// Steps of a network so small that they can be computed by hand: one fully connected layer
// and its loss. Clipping, label smoothing and the optimizers against their formulas.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "step/build.h"
#include "train/small_session.h"

namespace tide {
namespace {

constexpr std::size_t kInputs = 3, kClasses = 2, kBatch = 2;
constexpr std::array<std::array<double, kInputs>, kBatch> kSamples{{{0.5, -1.0, 2.0}, {1.5, 0.25, -0.5}}};
constexpr std::array<std::size_t, kBatch> kLabels{1, 0};

class TwoSamples final : public Dataset {
 public:
  [[nodiscard]] std::string name() const override { return "two samples"; }
  [[nodiscard]] std::int64_t size() const override { return kBatch; }
  [[nodiscard]] Shape sample() const override { return {1, kInputs, 1, 1}; }
  [[nodiscard]] std::int64_t classes() const override { return kClasses; }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return 1; }
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    const auto at = static_cast<std::size_t>(index);
    for (std::size_t i = 0; i < kInputs; ++i) values[i] = static_cast<float>(kSamples[at][i]);
    labels[0] = static_cast<std::int32_t>(kLabels[at]);
  }
};

// Weights (class by class) and, behind them, biases.
using Numbers = std::array<double, kClasses * kInputs + kClasses>;
constexpr Numbers kStart{0.1, -0.2, 0.3, -0.4, 0.5, 0.6, 0.05, -0.15};

struct Computed {
  double loss = 0;
  Numbers gradient{};
};

Computed compute(const Numbers& weights, double smoothing = 0) {
  Computed result;
  for (std::size_t n = 0; n < kBatch; ++n) {
    std::array<double, kClasses> y{};
    double sum = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      y[c] = weights[kClasses * kInputs + c];
      for (std::size_t i = 0; i < kInputs; ++i) y[c] += weights[c * kInputs + i] * kSamples[n][i];
      sum += std::exp(y[c]);
    }
    for (std::size_t c = 0; c < kClasses; ++c) {
      const double probability = std::exp(y[c]) / sum;
      const double target = (c == kLabels[n] ? 1 - smoothing : 0) + smoothing / kClasses;
      result.loss -= target * std::log(probability) / kBatch;
      const double d = (probability - target) / kBatch;
      for (std::size_t i = 0; i < kInputs; ++i) result.gradient[c * kInputs + i] += d * kSamples[n][i];
      result.gradient[kClasses * kInputs + c] += d;
    }
  }
  return result;
}

double norm_of(const Numbers& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return std::sqrt(sum);
}

NetworkPtr one_layer(double smoothing = 0) {
  Builder net("one layer");
  const Value x = net.fully_connected(net.input({1, kInputs, 1, 1}), {.channels = kClasses}, "fc");
  net.softmax_cross_entropy(x, {.label_smoothing = smoothing});
  return std::make_shared<const Network>(std::move(net).build());
}

test::SessionPtr open(const OptimizerOptions& optimizer, const std::string& backend, double smoothing = 0) {
  SessionOptions options = test::session_options();
  options.backend = backend;
  options.optimizer = optimizer;
  test::SessionPtr session = test::open_session(one_layer(smoothing), {{kBatch, true}}, options);
  std::vector<float> weights(kStart.begin(), kStart.begin() + kClasses * kInputs);
  session->set_parameter(ParameterId(0), weights);
  session->set_parameter(ParameterId(1), std::vector<float>(kStart.begin() + kClasses * kInputs, kStart.end()));
  return session;
}

double step(Session& session, double rate) {
  const std::vector<std::int64_t> samples{0, 1};
  return session.run({kBatch, true}, TwoSamples(), samples, rate).loss;
}

void expect_weights(const Session& session, const Numbers& expected) {
  std::vector<float> actual = session.parameter(ParameterId(0));
  for (const float bias : session.parameter(ParameterId(1))) actual.push_back(bias);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
}

class ByHand : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cpu" && !test::has_cpu()) GTEST_SKIP() << "this build has no cpu backend";
  }
};

TEST_P(ByHand, PlainDescent) {
  const test::SessionPtr session = open({.kind = OptimizerKind::sgd}, GetParam());
  const Computed first = compute(kStart);
  EXPECT_NEAR(step(*session, 0.5), first.loss, 1e-6);
  Numbers weights = kStart;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.5 * first.gradient[i];
  expect_weights(*session, weights);
  EXPECT_NEAR(step(*session, 0.5), compute(weights).loss, 1e-6);
}

TEST_P(ByHand, LabelSmoothing) {
  const test::SessionPtr session = open({.kind = OptimizerKind::sgd}, GetParam(), 0.3);
  const Computed first = compute(kStart, 0.3);
  EXPECT_NEAR(step(*session, 0.5), first.loss, 1e-6);
  EXPECT_GT(std::abs(first.loss - compute(kStart).loss), 0.01);
  Numbers weights = kStart;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.5 * first.gradient[i];
  expect_weights(*session, weights);
}

TEST_P(ByHand, ClippingScalesAllGradientsTogether) {
  const Computed first = compute(kStart);
  const double norm = norm_of(first.gradient);
  const double limit = norm / 3;
  const test::SessionPtr session = open({.kind = OptimizerKind::sgd, .clip_norm = limit}, GetParam());
  step(*session, 0.5);
  Numbers weights = kStart;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.5 * first.gradient[i] * limit / (norm + 1e-6);
  expect_weights(*session, weights);
}

TEST_P(ByHand, ClippingLeavesSmallGradientsAsTheyAre) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adam}) {
    const test::SessionPtr clipped = open({.kind = kind, .clip_norm = 100}, GetParam());
    const test::SessionPtr plain = open({.kind = kind}, GetParam());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(step(*clipped, 0.1), step(*plain, 0.1));
    EXPECT_EQ(clipped->weights_hash(), plain->weights_hash());
  }
}

// Two steps of each optimizer, as PyTorch defines them.
TEST_P(ByHand, Momentum) {
  for (const bool nesterov : {false, true}) {
    const test::SessionPtr session = open(
        {.kind = nesterov ? OptimizerKind::nesterov : OptimizerKind::momentum, .momentum = 0.8, .weight_decay = 0.1},
        GetParam());
    Numbers weights = kStart, velocity{};
    for (int t = 0; t < 2; ++t) {
      step(*session, 0.2);
      const Numbers gradient = compute(weights).gradient;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double g = gradient[i] + 0.1 * weights[i];
        velocity[i] = 0.8 * velocity[i] + g;
        weights[i] -= 0.2 * (nesterov ? g + 0.8 * velocity[i] : velocity[i]);
      }
    }
    expect_weights(*session, weights);
  }
}

TEST_P(ByHand, Adam) {
  for (const bool decoupled : {false, true}) {
    const test::SessionPtr session = open({.kind = decoupled ? OptimizerKind::adamw : OptimizerKind::adam,
                                           .beta1 = 0.8,
                                           .beta2 = 0.9,
                                           .weight_decay = 0.1},
                                          GetParam());
    Numbers weights = kStart, first{}, second{};
    for (int t = 1; t <= 2; ++t) {
      step(*session, 0.2);
      const Numbers gradient = compute(weights).gradient;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double g = gradient[i] + (decoupled ? 0 : 0.1 * weights[i]);
        if (decoupled) weights[i] -= 0.2 * 0.1 * weights[i];
        first[i] = 0.8 * first[i] + 0.2 * g;
        second[i] = 0.9 * second[i] + 0.1 * g * g;
        weights[i] -= 0.2 * first[i] / (1 - std::pow(0.8, t)) / (std::sqrt(second[i] / (1 - std::pow(0.9, t))) + 1e-8);
      }
    }
    expect_weights(*session, weights);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ByHand, testing::Values("cpu", "reference"),
                         [](const auto& row) { return row.param; });

// Clipping needs all gradients before the first update; without it, updates come as soon as
// they can, and gradients are gone.
TEST(Clipping, DefersTheUpdates) {
  for (const double clip : {0.0, 1.0}) {
    StepOptions options{.batch = 4, .rules = Rules::minimal, .training = true, .optimizer = {}};
    options.optimizer.clip_norm = clip;
    const Step built = build_step(test::small_network(), options);
    std::size_t last_backward = 0, first_update = built.ordered_tasks, norms = 0;
    for (std::size_t t = 0; t < built.ordered_tasks; ++t) {
      const TaskKind kind = built.tasks[t].kind;
      if (kind == TaskKind::update) first_update = std::min(first_update, t);
      if (kind == TaskKind::backward || kind == TaskKind::backward_data || kind == TaskKind::backward_weights)
        last_backward = t;
      if (kind != TaskKind::norm) continue;
      ++norms;
      EXPECT_GT(t, last_backward);
      EXPECT_EQ(first_update, built.ordered_tasks);
    }
    EXPECT_EQ(norms, clip > 0 ? 1U : 0U);
    EXPECT_EQ(first_update > last_backward, clip > 0);
  }
}

}  // namespace
}  // namespace tide
