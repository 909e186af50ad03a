// Checkpoints: what is in them, and how a session takes those that do not fit.
#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <set>

#include "formats/safetensors.h"
#include "train/small_session.h"

namespace tide {
namespace {

using test::error_of;

TEST(Checkpoint, HoldsEverythingThatPersists) {
  SessionOptions options = test::session_options();
  options.optimizer.kind = OptimizerKind::adam;
  const test::SessionPtr session = test::open_session(test::small_network(), {{4, true}}, options);
  std::set<std::string> names;
  for (const NamedTensor& tensor : session->state()) EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
  std::set<std::string> expected;
  for (const Parameter& parameter : session->network().parameters) {
    expected.insert(parameter.name);
    if (parameter.frozen) continue;  // statistics
    expected.insert(parameter.name + ".first_moment");
    expected.insert(parameter.name + ".second_moment");
  }
  EXPECT_EQ(names, expected);
}

TEST(Checkpoint, SurvivesTheFile) {
  const test::SessionPtr session = test::open_session(test::small_network(), {{4, true}});
  test::run_steps(*session, 4, 2);
  const test::TemporaryFile file("round_trip.safetensors");
  const Checkpoint saved{"a \"name\"", 1234567890123456789U, ~std::uint64_t{0}, session->state()};
  save_checkpoint(file.path(), saved);
  const Checkpoint loaded = load_checkpoint(file.path());
  EXPECT_EQ(loaded.model, saved.model);
  EXPECT_EQ(loaded.steps, saved.steps);
  EXPECT_EQ(loaded.seed, saved.seed);
  EXPECT_TRUE(test::same(loaded.tensors, saved.tensors));
}

// The state of a session, damaged, is refused as a whole.
struct Misfit {
  const char* name;
  std::function<void(std::vector<NamedTensor>&)> damage;
  const char* message;
  friend std::ostream& operator<<(std::ostream& out, const Misfit& c) { return out << c.name; }
};

class Misfits : public testing::TestWithParam<Misfit> {};

TEST_P(Misfits, AreRefusedAndChangeNothing) {
  const test::SessionPtr trained = test::open_session(test::small_network(), {{4, true}});
  test::run_steps(*trained, 4, 2);
  const test::SessionPtr session = test::open_session(test::small_network(), {{4, true}});
  const std::vector<NamedTensor> before = session->state();
  std::vector<NamedTensor> state = trained->state();
  GetParam().damage(state);
  const std::string error = error_of([&] { session->restore(state, 7); });
  EXPECT_NE(error.find(GetParam().message), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_TRUE(test::same(session->state(), before));
  EXPECT_EQ(session->steps_done(), 0U);
}

NamedTensor& find(std::vector<NamedTensor>& state, const std::string& name) {
  for (NamedTensor& tensor : state)
    if (tensor.name == name) return tensor;
  throw Error("there is no '{}'", name);
}

std::vector<Misfit> misfits() {
  using State = std::vector<NamedTensor>;
  return {
      {"Missing",
       [](State& state) { std::erase_if(state, [](const NamedTensor& tensor) { return tensor.name == "fc.weight"; }); },
       "fc.weight"},
      {"MissingMomentum", [](State& state) { find(state, "fc.bias.first_moment").name = "x"; }, "fc.bias.first_moment"},
      {"TooFewValues", [](State& state) { find(state, "conv2.bias").values.pop_back(); }, "conv2.bias"},
      {"OtherShape",
       [](State& state) {
         NamedTensor& tensor = find(state, "conv2.weight");
         tensor.shape = {tensor.shape.channels(), tensor.shape.batch(), tensor.shape.height(), tensor.shape.width()};
       },
       "'conv2.weight' is 4x5x3x3 in the checkpoint and 5x4x3x3 in the network"},
      {"OtherSize",
       [](State& state) {
         NamedTensor& tensor = find(state, "norm1.scale");
         tensor.shape = {6};
         tensor.values.resize(6);
       },
       "norm1.scale"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, Misfits, testing::ValuesIn(misfits()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Checkpoint, AVectorMayStandInAnyDimension) {
  const test::SessionPtr session = test::open_session(test::small_network(), {{4, true}});
  std::vector<NamedTensor> state = session->state();
  NamedTensor& bias = find(state, "conv2.bias");
  const std::vector<Shape> shapes{{5}, {1, 5, 1, 1}, {5, 1, 1, 1}, {1, 1, 1, 1, 1, 5}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    bias.shape = shapes[i];
    bias.values.assign(5, static_cast<float>(i) + 0.25F);
    session->restore(state, 0);
    EXPECT_EQ(session->parameter(test::parameter_named(session->network(), "conv2.bias")), bias.values);
  }
}

TEST(Checkpoint, MayBeTakenWithoutItsOptimizer) {
  const test::SessionPtr trained = test::open_session(test::small_network(), {{4, true}});
  test::run_steps(*trained, 4, 2);
  SessionOptions options = test::session_options();
  options.optimizer.kind = OptimizerKind::adam;
  const test::SessionPtr other = test::open_session(test::small_network(), {{4, true}}, options);
  EXPECT_NE(error_of([&] { other->restore(trained->state(), 2); }), "");
  other->restore(trained->state(), 2, false);
  EXPECT_EQ(other->weights_hash(), trained->weights_hash());
}

TEST(Checkpoint, RefusesOtherSafetensorsFiles) {
  const test::TemporaryFile file("foreign.safetensors");
  const auto error_with = [&](std::map<std::string, std::string> metadata, std::vector<std::int64_t> shape) {
    write_safetensors(file.path(), {std::move(metadata), {{"w", std::move(shape), {1.0F}}}});
    return error_of([&] { static_cast<void>(load_checkpoint(file.path())); });
  };
  EXPECT_EQ(error_with({{"steps", "1"}, {"seed", "2"}}, {1}), "");
  EXPECT_NE(error_with({{"steps", "1"}}, {1}).find("'seed'"), std::string::npos);
  EXPECT_NE(error_with({{"seed", "1"}}, {1}).find("'steps'"), std::string::npos);
  EXPECT_NE(error_with({{"steps", "-1"}, {"seed", "2"}}, {1}).find("not a number"), std::string::npos);
  EXPECT_NE(error_with({{"steps", "1e3"}, {"seed", "2"}}, {1}).find("not a number"), std::string::npos);
  EXPECT_NE(error_with({{"steps", ""}, {"seed", "2"}}, {1}).find("not a number"), std::string::npos);
  EXPECT_NE(error_with({{"steps", "1"}, {"seed", "2"}}, {1, 1, 1, 1, 1, 1, 1}).find("6 dimensions"), std::string::npos);
}

}  // namespace
}  // namespace tide
