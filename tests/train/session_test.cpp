// What a session promises besides training: evaluation changes nothing, variants share their
// parameters, budgets are answered, mistakes are refused.
#include "train/session.h"

#include <gtest/gtest.h>

#include "train/initialize.h"
#include "train/small_session.h"

namespace tide {
namespace {

using test::error_of;
using test::open_session;
using test::run_steps;
using test::small_network;

TEST(Session, StartsWithTheInitialValues) {
  const test::SessionPtr session = open_session(small_network(), {{4, true}});
  const Network& network = session->network();
  for (std::size_t p = 0; p < network.parameters.size(); ++p)
    EXPECT_EQ(session->parameter(ParameterId(p)), initial_values(network, ParameterId(p), 1))
        << network.parameters[p].name;
  for (const NamedTensor& tensor : session->state()) {
    if (!tensor.name.ends_with("first_moment")) continue;
    EXPECT_EQ(tensor.values, std::vector<float>(tensor.values.size(), 0.0F)) << tensor.name;
  }
}

TEST(Session, TwoRunsAreEqualAndSeedsDiffer) {
  SessionOptions options = test::session_options();
  const test::SessionPtr a = open_session(small_network(), {{4, true}}), b = open_session(small_network(), {{4, true}});
  options.seed = 2;
  const test::SessionPtr c = open_session(small_network(), {{4, true}}, options);
  EXPECT_EQ(a->weights_hash(), b->weights_hash());
  EXPECT_NE(a->weights_hash(), c->weights_hash());
  EXPECT_EQ(run_steps(*a, 4, 3), run_steps(*b, 4, 3));
  EXPECT_EQ(a->weights_hash(), b->weights_hash());
}

TEST(Session, EveryParameterLearns) {
  const test::SessionPtr session = open_session(small_network(), {{4, true}});
  run_steps(*session, 4, 2);
  const Network& network = session->network();
  for (std::size_t p = 0; p < network.parameters.size(); ++p) {
    if (network.parameters[p].name == "conv1.bias") continue;  // the batch norm behind it cancels it
    EXPECT_NE(session->parameter(ParameterId(p)), initial_values(network, ParameterId(p), 1))
        << network.parameters[p].name;
  }
}

TEST(Session, TheHashSeesEveryBit) {
  const test::SessionPtr session = open_session(small_network(), {{4, true}});
  const std::uint64_t before = session->weights_hash();
  const ParameterId id = test::parameter_named(session->network(), "norm1.running_variance");
  std::vector<float> values = session->parameter(id);
  values[2] = std::nextafter(values[2], 2.0F);
  session->set_parameter(id, values);
  EXPECT_NE(session->weights_hash(), before);
  EXPECT_EQ(session->parameter(id), values);
  values.pop_back();
  EXPECT_NE(error_of([&] { session->set_parameter(id, values); }).find("norm1.running_variance has 4 values, not 3"),
            std::string::npos);
}

TEST(Session, EvaluationChangesNothing) {
  const DatasetPtr data = test::first_digits(23);
  std::vector<StepVariant> variants{{4, true}};
  for (const StepVariant& variant : Session::evaluation_variants(*data, 10)) variants.push_back(variant);
  ASSERT_EQ(variants.size(), 3U);  // 10 and 3
  const test::SessionPtr with = open_session(small_network(), variants),
                         without = open_session(small_network(), {{4, true}});
  for (int i = 0; i < 3; ++i) {
    const std::vector<NamedTensor> before = with->state();
    const Session::Evaluation first = with->evaluate(*data, 10), again = with->evaluate(*data, 10);
    EXPECT_EQ(first.loss, again.loss);
    EXPECT_EQ(first.accuracy, again.accuracy);
    EXPECT_TRUE(test::same(with->state(), before));
    EXPECT_EQ(run_steps(*with, 4, 1), run_steps(*without, 4, 1));
  }
  EXPECT_EQ(with->steps_done(), 3U);
  EXPECT_TRUE(test::same(with->state(), without->state()));
}

TEST(Session, EvaluationIsTheMeanOverSamples) {
  const DatasetPtr data = test::first_digits(7);
  const test::SessionPtr session = open_session(small_network(), {{4, true}, {3, false}, {1, false}});
  run_steps(*session, 4, 5);
  double loss = 0, correct = 0;
  for (std::int64_t i = 0; i < 7; ++i) {
    const Executor::Metric metric = session->run({1, false}, *data, std::vector{i}, 0);
    EXPECT_EQ(metric.answers, 1);
    loss += metric.loss / 7;
    correct += metric.correct / 7;
  }
  const Session::Evaluation evaluation = session->evaluate(*data, 3);
  EXPECT_NEAR(evaluation.loss, loss, 1e-6 * loss);
  EXPECT_NEAR(evaluation.accuracy.value_or(-1), correct, 1e-12);
}

TEST(Session, AnEvaluationThatDoesNotFitIsMadeInPieces) {
  const DatasetPtr data = test::first_digits(23);
  const std::vector<StepVariant> variants = Session::evaluation_variants(*data, 10);
  const test::SessionPtr unlimited = open_session(small_network(), variants);
  const Session::Evaluation whole = unlimited->evaluate(*data, 10);
  SessionOptions options = test::session_options();
  for (const std::int64_t samples : {9, 4, 1}) {
    const test::SessionPtr fewer = open_session(small_network(), {{samples, false}});
    options.planner.memory[Tier::device] = fewer->arena_bytes();
    auto opened = Session::open(small_network(), variants, options);
    ASSERT_TRUE(std::holds_alternative<test::SessionPtr>(opened)) << samples;
    Session& session = *std::get<test::SessionPtr>(opened);
    EXPECT_LE(session.arena_bytes(), *options.planner.memory[Tier::device]);
    const Session::Evaluation pieces = session.evaluate(*data, 10);
    EXPECT_NEAR(pieces.loss, whole.loss, 1e-6 * whole.loss);
    EXPECT_EQ(pieces.accuracy, whole.accuracy);
    EXPECT_EQ(session.weights_hash(), unlimited->weights_hash());
  }
  // Nothing is smaller than one sample.
  *options.planner.memory[Tier::device] -= Bytes(256);
  EXPECT_TRUE(std::holds_alternative<PlanResult>(Session::open(small_network(), variants, options)));
}

TEST(Session, ASmallerLastBatchIsAStepLikeAnyOther) {
  const test::SessionPtr mixed = open_session(small_network(), {{8, true}, {3, true}, {5, false}});
  const test::SessionPtr alone = open_session(small_network(), {{3, true}});
  EXPECT_EQ(run_steps(*mixed, 3, 2), run_steps(*alone, 3, 2));
  EXPECT_EQ(mixed->weights_hash(), alone->weights_hash());
  // And both sizes may take turns.
  run_steps(*mixed, 8, 1);
  EXPECT_TRUE(std::isfinite(run_steps(*mixed, 3, 1)));
}

TEST(Session, ABudgetBelowTheFloorIsAnAnswer) {
  SessionOptions options = test::session_options();
  const std::vector<StepVariant> variants{{8, true}, {64, false}, {5, false}};
  options.planner.memory[Tier::device] = Bytes(1000);
  auto refused = Session::open(small_network(), variants, options);
  ASSERT_TRUE(std::holds_alternative<PlanResult>(refused));
  const PlanResult result = std::get<PlanResult>(std::move(refused));
  EXPECT_FALSE(result.plan);
  EXPECT_GT(result.floor[Tier::device], Bytes(1000));
  EXPECT_FALSE(result.bottleneck_task.empty());

  // What it asks for suffices: the evaluation needs more, and is made in pieces.
  options.planner.memory[Tier::device] = result.floor[Tier::device];
  auto second = Session::open(small_network(), variants, options);
  ASSERT_TRUE(std::holds_alternative<test::SessionPtr>(second));
  Session& session = *std::get<test::SessionPtr>(second);
  EXPECT_EQ(session.arena_bytes(), *options.planner.memory[Tier::device]);
  EXPECT_THROW(static_cast<void>(session.executor({64, false})), Error);
  run_steps(session, 8, 2);
  EXPECT_LE(session.executor({8, true}).high_water(), *options.planner.memory[Tier::device]);

  const test::SessionPtr unlimited = open_session(small_network(), variants);
  run_steps(*unlimited, 8, 2);
  EXPECT_EQ(session.weights_hash(), unlimited->weights_hash());
  const DatasetPtr data = test::first_digits(64 + 5);
  const Session::Evaluation whole = unlimited->evaluate(*data, 64), pieces = session.evaluate(*data, 64);
  EXPECT_NEAR(pieces.loss, whole.loss, 1e-6 * whole.loss);
  EXPECT_EQ(pieces.accuracy, whole.accuracy);

  options.planner.memory[Tier::device] = *options.planner.memory[Tier::device] - Bytes(1);
  EXPECT_TRUE(std::holds_alternative<PlanResult>(Session::open(small_network(), variants, options)));
}

TEST(Session, RefusesMistakes) {
  const test::SessionPtr session = open_session(small_network(), {{4, true}});
  const DatasetPtr data = digits();
  const auto run = [&](const StepVariant& variant, const Dataset& from, std::vector<std::int64_t> samples) {
    return error_of([&] { session->run(variant, from, samples, 0.1); });
  };
  EXPECT_EQ(run({5, true}, *data, {0, 1, 2, 3, 4}), "the session was not opened for training steps of batch 5");
  EXPECT_EQ(run({4, false}, *data, {0, 1, 2, 3}), "the session was not opened for evaluation steps of batch 4");
  EXPECT_EQ(run({4, true}, *data, {0, 1, 2}), "a step of batch 4 was given 3 samples");
  const DatasetPtr large = synthetic({.sample = {1, 3, 8, 8}, .classes = 10, .size = 16});
  EXPECT_EQ(run({4, true}, *large, {0, 1, 2, 3}),
            "small takes samples of 1x8x8 with 1 labels, synthetic has 3x8x8 with 1");
  const DatasetPtr dense = synthetic({.sample = {1, 1, 8, 8}, .classes = 10, .labels_per_sample = 64, .size = 16});
  EXPECT_NE(run({4, true}, *dense, {0, 1, 2, 3}), "");
  EXPECT_NE(error_of([] { static_cast<void>(Session::open(small_network(), {}, test::session_options())); }), "");
}

}  // namespace
}  // namespace tide
