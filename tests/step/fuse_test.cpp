// Which layers become one, and that a fused step computes what the separate layers do.
#include "step/fuse.h"

#include <gtest/gtest.h>

#include <set>

#include "backend/reference/interpreter.h"
#include "network/builder.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

std::int64_t count(const Network& network, LayerKind kind) {
  return std::count_if(network.layers.begin(), network.layers.end(), [&](const Layer& l) { return l.kind == kind; });
}

Network fused(const Network& network, Bytes limit = {}, std::int64_t batch = 1) {
  return fuse_layers(network, batch, DataType::f32, limit);
}

TEST(Fuse, TakesAdditionsAndRelusIntoBatchNorms) {
  const Network before = make_model("resnet50");
  const Network after = fused(before);
  EXPECT_EQ(count(before, LayerKind::add), 16);
  EXPECT_EQ(count(after, LayerKind::add), 0);
  EXPECT_EQ(count(after, LayerKind::relu), 0);
  EXPECT_EQ(count(after, LayerKind::batch_norm), count(before, LayerKind::batch_norm));
  std::int64_t with_addition = 0, with_relu = 0;
  for (const Layer& layer : after.layers) {
    if (layer.kind != LayerKind::batch_norm) continue;
    with_addition += layer.inputs.size() == 2 ? 1 : 0;
    with_relu += layer.as<BatchNormOptions>().fused == FusedFunction::relu ? 1 : 0;
  }
  EXPECT_EQ(with_addition, 16);
  EXPECT_EQ(with_relu, 49);  // all but the four on the shortcuts
}

TEST(Fuse, LeavesWhatOthersReadAlone) {
  Builder net("net");
  const Value x = net.convolution(net.input({1, 4, 6, 6}), {.channels = 8, .window = Window::square(3, 1, 1)});
  const Value n = net.batch_norm(x);
  const Value r = net.relu(n);
  const Value both = net.add({n, r});  // the batch norm has two readers
  net.softmax_cross_entropy(net.fully_connected(net.relu(both), {.channels = 3}));
  const Network after = fused(std::move(net).build());
  EXPECT_EQ(count(after, LayerKind::relu), 2);
  EXPECT_EQ(count(after, LayerKind::add), 1);
}

// Behind an addition only the result is kept, from which the slope of silu does not follow.
TEST(Fuse, TakesOtherFunctionsIntoBatchNorms) {
  Builder net("net");
  Value x = net.convolution(net.input({1, 4, 6, 6}), {.channels = 4});
  const auto function = [](ActivationFunction f) { return ActivationOptions::of(f); };
  x = net.activation(net.batch_norm(x), {ActivationFunction::clip, -1, 2});
  x = net.activation(net.batch_norm(x), function(ActivationFunction::silu));
  x = net.activation(net.batch_norm(x), function(ActivationFunction::hard_swish));
  const Value shortcut = net.activation(net.batch_norm(x), function(ActivationFunction::gelu));
  x = net.activation(net.add({net.batch_norm(shortcut), shortcut}), function(ActivationFunction::silu));
  x = net.activation(net.add({net.batch_norm(x), x}), function(ActivationFunction::clip));
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 3}));
  const Network after = fused(std::move(net).build());
  std::vector<FusedFunction> found;
  for (const Layer& layer : after.layers)
    if (layer.kind == LayerKind::batch_norm) found.push_back(layer.as<BatchNormOptions>().fused);
  EXPECT_EQ(found, (std::vector{FusedFunction::clip, FusedFunction::silu, FusedFunction::hard_swish,
                                FusedFunction::none, FusedFunction::none, FusedFunction::clip}));
  EXPECT_EQ(count(after, LayerKind::activation), 2);  // gelu, and silu behind the addition
  EXPECT_EQ(count(after, LayerKind::add), 0);
  for (const Layer& layer : after.layers)
    if (layer.kind == LayerKind::batch_norm && layer.as<BatchNormOptions>().fused == FusedFunction::clip &&
        layer.inputs.size() == 1) {
      EXPECT_EQ(layer.as<BatchNormOptions>().fused_minimum, -1);
      EXPECT_EQ(layer.as<BatchNormOptions>().fused_maximum, 2);
    }
}

TEST(Fuse, LargeAdditionsStayApartWithinALimit) {
  const Network before = make_model("resnet50");
  // One sample of a first stage's block output: 256 x 56 x 56 floats; four of them.
  const Bytes first_stage = bytes_of({1, 256, 56, 56}, DataType::f32);
  const Network some = fused(before, Bytes(first_stage.count() * 4 - 1));
  EXPECT_EQ(count(some, LayerKind::add), 3);
  EXPECT_EQ(count(fused(before, Bytes(first_stage.count() * 4)), LayerKind::add), 0);
  EXPECT_EQ(count(fused(before, Bytes(first_stage.count() * 4), 2), LayerKind::add), 3);
}

TEST(Fuse, IsRefusedUnderThePapersRules) {
  EXPECT_THROW(static_cast<void>(build_step(std::make_shared<Network>(make_model("resnet18")),
                                            {.batch = 1, .rules = Rules::superneurons, .fuse = true})),
               Error);
}

// A small network with every pattern: shortcut with and without a batch norm, an addition without
// relu, and a batch norm with two readers.
Network patterns() {
  Builder net("patterns");
  const auto convolve = [&](Value x, std::int64_t stride) {
    return net.convolution(x, {.channels = 6, .window = Window::square(3, stride, 1), .bias = false});
  };
  const Value a = net.relu(net.batch_norm(convolve(net.input({1, 3, 8, 8}), 1)));
  const Value b = net.relu(net.add({net.batch_norm(convolve(a, 2)), net.batch_norm(convolve(a, 2))}));
  const Value c = net.add({net.batch_norm(convolve(b, 1)), b});
  const Value n = net.batch_norm(convolve(c, 1));
  const Value d = net.relu(net.add({net.batch_norm(convolve(n, 1)), n}));
  const Value dropped = net.dropout(d, {.rate = 0.3});
  net.softmax_cross_entropy(net.fully_connected(dropped, {.channels = 5}));
  return std::move(net).build();
}

// New values of all parameters after one step in double precision.
std::vector<std::vector<double>> after_a_step(bool fuse) {
  StepOptions options;
  options.batch = 3;
  options.fuse = fuse;
  const auto step = std::make_shared<const Step>(build_step(std::make_shared<Network>(patterns()), options));
  ReferenceInterpreter interpreter(step);
  std::vector<std::vector<double>> values;
  for (std::size_t s = 0; s < step->storages.size(); ++s) {
    const TensorId entry = step->storages[s].entry;
    if (!entry.valid()) continue;
    const Tensor& tensor = step->tensor(entry);
    std::vector<double> start(static_cast<std::size_t>(tensor.shape.elements()));
    for (std::size_t i = 0; i < start.size(); ++i)
      start[i] = tensor.role == Role::labels ? static_cast<double>(i % 5)
                                             : 0.3 * std::sin(static_cast<double>(i * 7 + s)) +
                                                   (tensor.role == Role::running_variance ? 1.0 : 0.0);
    interpreter.set(entry, std::move(start));
  }
  interpreter.run(
      {.seed = 3, .step = 0, .learning_rate = 0.1, .update_count = 1, .first_sample = 0, .global_batch = 3});
  for (const Storage& storage : step->storages)
    if (storage.persistent && storage.tensor_class == TensorClass::parameter)
      values.push_back(interpreter.get(storage.exit));
  return values;
}

TEST(Fuse, ComputesTheSameGradients) {
  const auto apart = after_a_step(false), together = after_a_step(true);
  ASSERT_EQ(apart.size(), together.size());
  for (std::size_t p = 0; p < apart.size(); ++p) {
    ASSERT_EQ(apart[p].size(), together[p].size());
    for (std::size_t i = 0; i < apart[p].size(); ++i) EXPECT_NEAR(apart[p][i], together[p][i], 1e-12) << p << " " << i;
  }
}

TEST(Fuse, StepsHaveFewerTasks) {
  const auto network = std::make_shared<Network>(make_model("resnet50"));
  const Step apart = build_step(network, {.batch = 2}), together = build_step(network, {.batch = 2, .fuse = true});
  EXPECT_LT(together.ordered_tasks, apart.ordered_tasks / 3 * 2);
  // Every parameter is still updated once.
  std::set<TensorId> updated;
  for (std::size_t t = 0; t < together.ordered_tasks; ++t) {
    if (together.tasks[t].kind != TaskKind::update) continue;
    for (const Operand& operand : together.operands_of(TaskId(t))) {
      const bool made = operand.role == Role::weight && operand.access == Access::write;
      EXPECT_TRUE(!made || updated.insert(operand.tensor).second);
    }
  }
  std::size_t trained = 0;
  for (const Parameter& parameter : network->parameters)
    trained +=
        parameter.role == ParameterRole::running_mean || parameter.role == ParameterRole::running_variance ? 0 : 1;
  EXPECT_EQ(updated.size(), trained);
}

TEST(Fuse, Bf16StepsKeepParametersInFloats) {
  const Step step = build_step(std::make_shared<Network>(make_model("resnet18")),
                               {.batch = 2, .fuse = true, .activations = DataType::bf16});
  for (const Tensor& tensor : step.tensors) {
    const bool data = is_data(tensor.tensor_class);
    const bool loss =
        data && step.layer_kinds[tensor.layer.index()] == LayerKind::softmax_cross_entropy && tensor.role == Role::y;
    EXPECT_EQ(tensor.type == DataType::bf16, data && !loss);
  }
}

}  // namespace
}  // namespace tide
