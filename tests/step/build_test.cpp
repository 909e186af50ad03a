#include "step/build.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "network/builder.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

NetworkPtr share(Network network) { return std::make_shared<Network>(std::move(network)); }

std::vector<std::string> names(const Network& network, const std::vector<LayerId>& order) {
  std::vector<std::string> result;
  for (const LayerId id : order) result.push_back(network.layer(id).name);
  return result;
}

std::vector<std::string> task_names(const Step& step) {
  std::vector<std::string> result;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) result.push_back(task_name(step, TaskId(t)));
  return result;
}

// Figure 6 of the SuperNeurons paper: two nested fans. i runs only after e, g and h.
TEST(ExecutionOrder, NestedFansOfThePaper) {
  Builder net("figure6");
  const Value a = net.input({1, 2, 4, 4}, "a");
  const Value b = net.relu(a, "b");
  const Value c = net.relu(b, "c");
  const Value d = net.relu(b, "d");
  const Value e = net.relu(c, "e");
  const Value f = net.relu(d, "f");
  const Value g = net.relu(f, "g");
  const Value h = net.relu(f, "h");
  const Value i = net.add({e, g, h}, "i");
  const Value j = net.fully_connected(i, {.channels = 2}, "j");
  net.softmax_cross_entropy(j, {}, "loss");
  const Network network = std::move(net).build();
  EXPECT_EQ(names(network, execution_order(network)),
            (std::vector<std::string>{"a", "b", "c", "e", "d", "f", "g", "h", "i", "j", "loss"}));
}

TEST(ExecutionOrder, VeryDeepNetworksNeedNoStack) {
  Builder net("deep");
  Value x = net.input({1, 1, 1, 1});
  for (int i = 0; i < 200000; ++i) x = net.relu(x);
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 2}));
  const NetworkPtr network = share(std::move(net).build());
  EXPECT_EQ(execution_order(*network).size(), 200003U);
  EXPECT_EQ(build_step(network, {}).layer_steps, 200002);
}

Network small_residual(bool frozen_start) {
  Builder net("residual");
  net.freeze(frozen_start);
  Value x = net.input({1, 3, 8, 8}, "in");
  x = net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "c1");
  net.freeze(false);
  const Value y = net.relu(
      net.batch_norm(
          net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1), .groups = 1, .bias = false}, "c2"), {},
          "bn"),
      "r");
  const Value sum = net.add({y, x}, "sum");
  net.softmax_cross_entropy(
      net.fully_connected(net.max_pool(sum, {.window = Window::square(2, 2)}, "pool"), {.channels = 3}, "fc"), {},
      "loss");
  return std::move(net).build();
}

TEST(BuildStep, MinimalRulesInOrder) {
  const Step step = build_step(share(small_residual(false)),
                               {.batch = 2, .rules = Rules::minimal, .training = true, .optimizer = {}});
  EXPECT_EQ(task_names(step), (std::vector<std::string>{
                                  "c1 forward",         "c2 forward",       "bn forward",          "r forward",
                                  "sum forward",        "pool forward",     "fc forward",          "loss forward",
                                  "loss backward",      "fc backward-data", "fc backward-weights", "fc update d_weight",
                                  "fc update d_bias",   "pool backward",    "r backward",          "bn backward",
                                  "bn update d_weight", "bn update d_bias", "c2 backward-weights", "c2 backward-data",
                                  "c2 update d_weight", "c1 sum-gradients", "c1 backward-weights", "c1 update d_weight",
                                  "c1 update d_bias"}));
  EXPECT_EQ(step.layer_steps, 8);
}

TEST(BuildStep, FrozenLayersMakeNothing) {
  const Step step =
      build_step(share(small_residual(true)), {.batch = 2, .rules = Rules::minimal, .training = true, .optimizer = {}});
  for (const std::string& name : task_names(step)) {
    EXPECT_NE(name, "c1 backward-weights");
    EXPECT_NE(name, "c1 sum-gradients");
    EXPECT_NE(name, "c2 backward-data") << "nothing below c2 is trained";
  }
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    EXPECT_NE(tensor_name(step, TensorId(t)), "c1.d_weight");
    EXPECT_NE(tensor_name(step, TensorId(t)), "c1.first_moment");
    EXPECT_NE(tensor_name(step, TensorId(t)), "c2.dx");
  }
}

TEST(BuildStep, ForwardOnlyHasNoGradientsNoSavedStateAndNoReplays) {
  const Step step = build_step(share(make_model("inception-v3")),
                               {.batch = 1, .rules = Rules::minimal, .training = false, .optimizer = {}});
  for (const Tensor& tensor : step.tensors) {
    EXPECT_NE(tensor.tensor_class, TensorClass::activation_gradient);
    EXPECT_NE(tensor.tensor_class, TensorClass::parameter_gradient);
    EXPECT_NE(tensor.tensor_class, TensorClass::saved_state);
  }
  EXPECT_EQ(step.tasks.size(), step.ordered_tasks);
}

// Persistent storages are the same, in the same order, in every variant of a network.
TEST(BuildStep, VariantsAgreeOnWhatPersists) {
  const NetworkPtr network = share(make_model("resnet18"));
  const auto persistent = [&](std::int64_t batch, bool training) {
    const Step step =
        build_step(network, {.batch = batch, .rules = Rules::minimal, .training = training, .optimizer = {}});
    std::vector<std::pair<std::string, std::int64_t>> list;
    for (const Storage& storage : step.storages)
      if (storage.persistent) list.emplace_back(tensor_name(step, storage.exit), storage.bytes.count());
    return list;
  };
  EXPECT_EQ(persistent(8, true), persistent(3, true));
  EXPECT_EQ(persistent(8, true), persistent(5, false));
}

// Rounds add to gradients that persist, in the same places in every part; only the update updates.
TEST(BuildStep, PartsOfACutBatchShareTheirGradients) {
  const NetworkPtr network = share(make_model("lstm:1,8,4"));
  const auto part = [&](Part which) { return build_step(network, {.batch = 2, .part = which}); };
  const auto persistent = [](const Step& step) {
    std::vector<std::pair<std::string, std::int64_t>> list;
    for (const Storage& storage : step.storages)
      if (storage.persistent && storage.tensor_class != TensorClass::metric)
        list.emplace_back(tensor_name(step, storage.exit), storage.bytes.count());
    return list;
  };
  const auto count = [](const Step& step, auto predicate) {
    return std::count_if(step.operands.begin(), step.operands.end(), [&](const Operand& operand) {
      return step.tensor(operand.tensor).tensor_class == TensorClass::parameter_gradient && predicate(operand);
    });
  };
  const Step first = part(Part::first_round), later = part(Part::later_round), update = part(Part::update),
             whole = part(Part::whole);
  EXPECT_EQ(persistent(first), persistent(later));
  EXPECT_EQ(persistent(first), persistent(update));
  const auto written = [](const Operand& operand) { return operand.access == Access::write; };
  const auto added = [](const Operand& operand) { return operand.access == Access::accumulate; };
  EXPECT_EQ(count(first, written), count(whole, written));
  EXPECT_EQ(count(later, written), 0);
  EXPECT_EQ(count(later, added), count(whole, added) + count(whole, written));
  for (const Task& task : update.tasks) EXPECT_EQ(task.kind, TaskKind::update);
  for (const Step& step : {first, later})
    for (const Task& task : step.tasks) EXPECT_NE(task.kind, TaskKind::update);
  EXPECT_EQ(first.ordered_tasks + update.ordered_tasks, whole.ordered_tasks);
  EXPECT_THROW((void)build_step(network, {.training = false, .part = Part::later_round}), Error);
}

TEST(BuildStep, SharedWeightsAccumulateInOrderAndUpdateOnce) {
  const Step step = build_step(share(make_model("lstm:1,8,4")),
                               {.batch = 2, .rules = Rules::minimal, .training = true, .optimizer = {}});
  std::vector<int> writes(step.tensors.size(), 0), adds(step.tensors.size(), 0);
  int accumulated = 0;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    for (const Operand& operand : step.operands_of(TaskId(t))) {
      if (operand.access == Access::write) ++writes[operand.tensor.index()];
      if (operand.access == Access::accumulate) {
        EXPECT_EQ(writes[operand.tensor.index()], 1) << "added to before it was written";
        ++adds[operand.tensor.index()];
        ++accumulated;
      }
    }
  for (std::size_t t = 0; t < step.tensors.size(); ++t) EXPECT_LE(writes[t], 1) << tensor_name(step, TensorId(t));
  EXPECT_GT(accumulated, 0);
  std::vector<std::string> updates;
  for (const std::string& name : task_names(step))
    if (name.find(" update ") != std::string::npos) updates.push_back(name);
  std::sort(updates.begin(), updates.end());
  EXPECT_EQ(std::adjacent_find(updates.begin(), updates.end()), updates.end());
}

TEST(BuildStep, ClippingDefersEveryUpdate) {
  StepOptions options;
  options.optimizer.clip_norm = 1;
  const Step step = build_step(share(small_residual(false)), options);
  bool normed = false;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const TaskKind kind = step.tasks[t].kind;
    if (kind == TaskKind::norm) normed = true;
    EXPECT_EQ(kind == TaskKind::update || kind == TaskKind::norm, normed);
  }
  EXPECT_TRUE(normed);
}

TEST(BuildStep, ReplaysHaveNoSideEffects) {
  const Step step = build_step(share(make_model("densenet121", Shape{1, 3, 32, 32})),
                               {.batch = 1, .rules = Rules::minimal, .training = true, .optimizer = {}});
  int replays = 0;
  for (std::size_t t = step.ordered_tasks; t < step.tasks.size(); ++t) {
    EXPECT_EQ(step.tasks[t].kind, TaskKind::replay);
    ++replays;
    for (const Operand& operand : step.operands_of(TaskId(t)))
      if (operand.access != Access::read) {
        EXPECT_FALSE(step.storage(step.tensor(operand.tensor).storage).persistent);
        EXPECT_NE(operand.role, Role::mean);
      }
  }
  EXPECT_GT(replays, 400);
}

TEST(InsertForks, OneBranchPerConsumer) {
  const Network forked = insert_forks(make_model("superneurons/resnet50"));
  int forks = 0;
  for (const Layer& layer : forked.layers)
    if (layer.kind == LayerKind::fork) {
      ++forks;
      EXPECT_EQ(layer.outputs.size(), 2U);
    }
  EXPECT_EQ(forks, 16);
  std::vector<std::vector<int>> uses(forked.layers.size());
  for (std::size_t l = 0; l < forked.layers.size(); ++l) uses[l].resize(forked.layers[l].outputs.size());
  for (const Layer& layer : forked.layers)
    for (const Value& input : layer.inputs) ++uses[input.layer.index()][static_cast<std::size_t>(input.output)];
  for (const auto& list : uses)
    for (const int count : list) EXPECT_LE(count, 1);
}

TEST(BuildStep, RefusesWhatCannotBe) {
  const NetworkPtr network = share(make_model("lenet"));
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 50})
    EXPECT_THROW(
        (void)build_step(network, {.batch = batch, .rules = Rules::minimal, .training = true, .optimizer = {}}), Error);
  Builder net("inference");
  net.relu(net.input({1, 1, 2, 2}));
  const NetworkPtr no_loss = share(std::move(net).build());
  EXPECT_THROW((void)build_step(no_loss, {}), Error);
  EXPECT_EQ(
      build_step(no_loss, {.batch = 1, .rules = Rules::minimal, .training = false, .optimizer = {}}).ordered_tasks, 1U);
}

}  // namespace
}  // namespace tide
