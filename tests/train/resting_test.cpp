// Sessions whose parameters rest in host memory: read, written, saved and restored there.
#include <gtest/gtest.h>

#include "step/build.h"
#include "train/checkpoint.h"
#include "train/small_session.h"

namespace tide {
namespace {

SessionOptions resting_options() {
  SessionOptions options = test::session_options();
  options.policy = "superneurons";
  options.optimizer.kind = OptimizerKind::adam;
  options.planner.parameters = Parameters::host;
  options.planner.least_to_rest = Bytes();
  return options;
}

SessionOptions device_options() {
  SessionOptions options = resting_options();
  options.planner.parameters = Parameters::device;
  return options;
}

TEST(RestingSessions, TrainAndEvaluateWithTheSameNumbers) {
  const NetworkPtr network = test::small_network();
  const std::vector<StepVariant> variants{{8, true}, {3, true}, {4, false}};
  const test::SessionPtr plain = test::open_session(network, variants, device_options());
  EXPECT_TRUE(plain->host_bytes().is_zero());
  for (const bool guard : {true, false}) {
    SessionOptions options = resting_options();
    options.executor.guard = guard;
    const test::SessionPtr session = test::open_session(network, variants, options);
    EXPECT_FALSE(session->host_bytes().is_zero());
    const test::SessionPtr reference = test::open_session(network, variants, device_options());
    EXPECT_EQ(session->weights_hash(), reference->weights_hash());  // as initialized
    for (Session* const each : {session.get(), reference.get()}) {
      test::run_steps(*each, 8, 3);
      test::run_steps(*each, 3, 1);
    }
    EXPECT_EQ(session->weights_hash(), reference->weights_hash());
    EXPECT_NE(session->weights_hash(), plain->weights_hash());
    EXPECT_EQ(session->evaluate(*test::first_digits(4), 4).loss, reference->evaluate(*test::first_digits(4), 4).loss);
    EXPECT_TRUE(test::same(session->state(), reference->state()));
  }
}

TEST(RestingSessions, GoOnFromACheckpoint) {
  const NetworkPtr network = test::small_network();
  const test::SessionPtr whole = test::open_session(network, {{4, true}}, device_options());
  test::run_steps(*whole, 4, 2);
  const test::TemporaryFile file("resting.safetensors");
  {
    const test::SessionPtr first = test::open_session(network, {{4, true}}, resting_options());
    test::run_steps(*first, 4, 2);
    save_checkpoint(file.path(), {"small", first->steps_done(), 1, first->state()});
  }
  const test::SessionPtr second = test::open_session(network, {{4, true}}, resting_options());
  const Checkpoint loaded = load_checkpoint(file.path());
  second->restore(loaded.tensors, loaded.steps);
  EXPECT_TRUE(test::same(second->state(), whole->state()));
  test::run_steps(*second, 4, 2);
  test::run_steps(*whole, 4, 2);
  EXPECT_TRUE(test::same(second->state(), whole->state()));
}

TEST(RestingSessions, ParametersCanBeSet) {
  const test::SessionPtr session = test::open_session(test::small_network(), {{4, true}}, resting_options());
  const ParameterId id = test::parameter_named(session->network(), "conv2.weight");
  std::vector<float> values = session->parameter(id);
  for (float& value : values) value = 2 * value + 1;
  session->set_parameter(id, values);
  EXPECT_EQ(session->parameter(id), values);
}

TEST(RestingSessions, APlanFromAFileDecidesForAllVariants) {
  const NetworkPtr network = test::small_network();
  SessionOptions options = resting_options();
  const test::SessionPtr planned = test::open_session(network, {{4, true}}, options);
  options.plan = planned->plan({4, true});
  options.planner.parameters = Parameters::device;
  const test::SessionPtr session = test::open_session(network, {{4, true}, {2, false}}, options);
  EXPECT_EQ(session->host_bytes(), planned->host_bytes());
  test::run_steps(*session, 4, 2);
  test::run_steps(*planned, 4, 2);
  EXPECT_EQ(session->weights_hash(), planned->weights_hash());
}

}  // namespace
}  // namespace tide
