// Frozen layers: their parameters do not move, and what only their training would need is
// not made at all.
#include <gtest/gtest.h>

#include "step/build.h"
#include "train/initialize.h"
#include "train/small_session.h"

namespace tide {
namespace {

// A frozen front (as in fine-tuning), a trained layer, a frozen one in between, a trained end.
NetworkPtr partly_frozen(bool frozen = true) {
  Builder net("partly frozen");
  Value x = net.input({1, 1, 8, 8}, "in");
  net.freeze(frozen);
  x = net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "front");
  x = net.relu(net.batch_norm(x, {}, "front_norm"), "front_relu");
  x = net.max_pool(x, {.window = Window::square(2, 2)}, "front_pool");
  net.freeze(false);
  x = net.relu(net.convolution(x, {.channels = 5, .window = Window::square(3, 1, 1)}, "trained"), "relu");
  net.freeze(frozen);
  x = net.tanh(net.convolution(x, {.channels = 3}, "middle"), "tanh");
  net.freeze(false);
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 10}, "fc"), {}, "softmax");
  return std::make_shared<const Network>(std::move(net).build());
}

bool is_frozen(const Parameter& parameter) {
  return parameter.name.starts_with("front") || parameter.name.starts_with("middle");
}

class Frozen : public testing::TestWithParam<OptimizerKind> {
 protected:
  static OptimizerOptions optimizer() {
    OptimizerOptions options;
    options.kind = GetParam();
    options.weight_decay = 0.1;  // not of what is frozen
    return options;
  }
};

TEST_P(Frozen, ParametersDoNotMove) {
  SessionOptions options = test::session_options();
  options.optimizer = optimizer();
  const test::SessionPtr session = test::open_session(partly_frozen(), {{4, true}}, options);
  test::run_steps(*session, 4, 3);
  const Network& network = session->network();
  for (std::size_t p = 0; p < network.parameters.size(); ++p) {
    const Parameter& parameter = network.parameters[p];
    // A frozen batch norm still follows the data with its statistics, as in PyTorch.
    if (parameter.role == ParameterRole::running_mean || parameter.role == ParameterRole::running_variance) continue;
    const bool moved = session->parameter(ParameterId(p)) != initial_values(network, ParameterId(p), 1);
    EXPECT_EQ(moved, !is_frozen(parameter)) << parameter.name;
  }
}

TEST_P(Frozen, TheStepHasNothingForThem) {
  const Step step =
      build_step(partly_frozen(), {.batch = 4, .rules = Rules::minimal, .training = true, .optimizer = optimizer()});
  std::vector<bool> read_later(step.tensors.size(), false);  // by a task that is not forward
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const std::string& layer = step.layer_names[step.tasks[t].layer.index()];
    const TaskKind kind = step.tasks[t].kind;
    if (kind != TaskKind::forward) {
      EXPECT_FALSE(layer.starts_with("front")) << task_name(step, TaskId(t));
      for (const Operand& operand : step.operands_of(TaskId(t)))
        if (operand.access == Access::read) read_later[operand.tensor.index()] = true;
    }
    EXPECT_TRUE(layer != "middle" || kind == TaskKind::forward || kind == TaskKind::backward_data)
        << task_name(step, TaskId(t));
  }
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const Tensor& tensor = step.tensors[t];
    const std::string name = tensor_name(step, TensorId(t));
    const bool frozen_parameter =
        tensor.parameter.valid() && is_frozen(step.network->parameters[tensor.parameter.index()]);
    const bool front = tensor.layer.valid() && step.layer_names[tensor.layer.index()].starts_with("front");
    const TensorClass tensor_class = tensor.tensor_class;
    if (frozen_parameter) {
      EXPECT_NE(tensor_class, TensorClass::parameter_gradient) << name;
      EXPECT_NE(tensor_class, TensorClass::optimizer_state) << name;
    }
    if (!front) continue;
    EXPECT_NE(tensor_class, TensorClass::activation_gradient) << name;
    EXPECT_NE(tensor.role, Role::indices) << name;
    // Batch norm's saved statistics are made by its kernel, but nobody keeps them.
    EXPECT_FALSE(tensor_class == TensorClass::saved_state && read_later[t]) << name;
    // Of the front, backward needs the value that the first trained layer reads.
    EXPECT_EQ(tensor_class == TensorClass::activation && read_later[t], name == "front_pool.y") << name;
  }
}

TEST_P(Frozen, LessMemoryIsNeeded) {
  SessionOptions options = test::session_options();
  options.optimizer = optimizer();
  const test::SessionPtr frozen = test::open_session(partly_frozen(), {{64, true}}, options);
  const test::SessionPtr trained = test::open_session(partly_frozen(false), {{64, true}}, options);
  EXPECT_LT(frozen->arena_bytes(), trained->arena_bytes());
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Frozen,
                         testing::Values(OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adamw),
                         [](const auto& row) {
                           return std::string(row.param == OptimizerKind::sgd        ? "sgd"
                                              : row.param == OptimizerKind::momentum ? "momentum"
                                                                                     : "adamw");
                         });

// With superneurons' rules every gradient is made, but a frozen parameter still stays.
TEST(FrozenRules, ParametersDoNotMoveUnderThePapersRules) {
  SessionOptions options = test::session_options();
  options.rules = Rules::superneurons;
  const test::SessionPtr session = test::open_session(partly_frozen(), {{4, true}}, options);
  test::run_steps(*session, 4, 2);
  const Network& network = session->network();
  const ParameterId front = test::parameter_named(network, "front.weight"),
                    trained = test::parameter_named(network, "trained.weight");
  EXPECT_EQ(session->parameter(front), initial_values(network, front, 1));
  EXPECT_NE(session->parameter(trained), initial_values(network, trained, 1));
}

// The trained layers get the same gradients whether or not others are frozen.
TEST(FrozenRules, TheOthersLearnTheSameInOneStep) {
  SessionOptions options = test::session_options();
  options.optimizer.kind = OptimizerKind::sgd;
  const test::SessionPtr frozen = test::open_session(partly_frozen(), {{4, true}}, options);
  const test::SessionPtr trained = test::open_session(partly_frozen(false), {{4, true}}, options);
  EXPECT_EQ(test::run_steps(*frozen, 4, 1), test::run_steps(*trained, 4, 1));
  for (const char* name : {"trained.weight", "trained.bias", "fc.weight", "fc.bias"}) {
    const ParameterId id = test::parameter_named(frozen->network(), name);
    EXPECT_EQ(frozen->parameter(id), trained->parameter(id)) << name;
  }
}

}  // namespace
}  // namespace tide
