// Steps whose layer outputs are bf16, against the double-precision reference from the same operands.
// A stored result is off by half a unit of eight bits, 2^-9 of each element at most. Products have
// weights of eight bits too, and the errors of their terms add like their terms do; gradients of
// weights may be stored as bf16 on their way. So a few times 2^-9 norm-wise: 1e-2.
#include "backend/compare_tasks.h"
#include "backend/network_cases.h"

namespace tide::test {
namespace {

Backend& bf16_backend() {
  static const std::unique_ptr<Backend> backend = make_backend("cuda", {.precision = Precision::bf16});
  return *backend;
}

StepOptions bf16_options(std::int64_t batch, bool fuse, bool training = true) {
  StepOptions options = step_options(batch, Rules::minimal, training);
  options.activations = DataType::bf16;
  options.fuse = fuse;
  return options;
}

class Bf16Test : public testing::TestWithParam<NetworkCase> {
 protected:
  void SetUp() override {
    if (tested_backend() == nullptr) GTEST_SKIP() << no_backend();
  }
};

TEST_P(Bf16Test, IsWithinItsTolerance) {
  for (const bool fuse : {false, true}) {
    Step step = build_step(GetParam().network(), bf16_options(GetParam().batch, fuse));
    compare_all_tasks(bf16_backend(), step, GetParam().bf16_tolerance);
  }
}

TEST_P(Bf16Test, IsWithinItsToleranceForwardOnly) {
  Step step = build_step(GetParam().network(), bf16_options(GetParam().batch, true, false));
  compare_all_tasks(bf16_backend(), step, GetParam().bf16_tolerance);
}

TEST_P(Bf16Test, IsWithinItsToleranceUnderSuperneuronsRules) {
  StepOptions options = bf16_options(GetParam().batch, false);
  options.rules = Rules::superneurons;
  Step step = build_step(GetParam().network(), options);
  compare_all_tasks(bf16_backend(), step, GetParam().bf16_tolerance);
}

TEST_P(Bf16Test, ReplayGivesTheSameBits) {
  for (const bool fuse : {false, true}) {
    Step built = build_step(GetParam().network(), bf16_options(GetParam().batch, fuse));
    bf16_backend().annotate(built);
    expect_equal_replays(bf16_backend(), std::make_shared<const Step>(std::move(built)));
  }
}

// Everything that is stored as bf16 is: outputs and their gradients, but for those of losses.
TEST_P(Bf16Test, StoresLayerOutputsInHalfTheBytes) {
  const Step step = build_step(GetParam().network(), bf16_options(GetParam().batch, true));
  for (const Tensor& tensor : step.tensors) {
    const bool data = is_data(tensor.tensor_class);
    const bool loss = data && tensor.role == Role::y && is_loss(step.network->layer(tensor.layer));
    EXPECT_EQ(tensor.type == DataType::bf16, data && !loss);
  }
}

std::vector<NetworkCase> cases() {
  std::vector<NetworkCase> all = all_cases();
  for (const NetworkCase& entry : fused_cases()) all.push_back(entry);
  const auto wide = [](ConvolutionOptions options) {
    return [options](Builder& net, Value x) { return net.convolution(x, options); };
  };
  all.push_back(
      {"wide_3x3", 4, {1, 64, 14, 14}, wide({.channels = 64, .window = Window::square(3, 1, 1), .bias = false})});
  all.push_back({"wide_1x1", 4, {1, 64, 14, 14}, wide({.channels = 128})});
  all.push_back({"image_3x3", 2, {1, 3, 14, 15}, wide({.channels = 32, .window = Window::square(3, 1, 1)})});
  all.push_back(
      {"image_7x7", 2, {1, 3, 23, 21}, wide({.channels = 32, .window = Window::square(7, 2, 3), .bias = false})});
  all.push_back({"image_11x11", 2, {1, 3, 31, 35}, wide({.channels = 32, .window = Window::square(11, 4)})});
  all.push_back(
      {"wide_stride", 4, {1, 64, 14, 14}, wide({.channels = 64, .window = Window::square(3, 2, 1), .bias = false})});
  all.push_back({"wide_fully_connected", 16, {1, 32, 4, 4}, [](Builder& net, Value x) {
                   return net.fully_connected(net.relu(net.fully_connected(x, {.channels = 256})), {.channels = 40});
                 }});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Bf16Test, testing::ValuesIn(cases()),
                         [](const auto& entry) { return entry.param.name; });

class Bf16PartsTest : public Bf16Test {};

TEST_P(Bf16PartsTest, IsWithinItsTolerance) {
  const NetworkPtr network = GetParam().network();
  StepOptions options = bf16_options(4, false);
  options.ranks.parts = 4;
  Step step = build_step(network, options);
  compare_all_tasks(bf16_backend(), step, GetParam().bf16_tolerance);
}

// Sums of shared batch norms have no fixed order.
std::vector<NetworkCase> cases_with_order() {
  std::vector<NetworkCase> all = parts_cases();
  std::erase_if(all, [](const NetworkCase& each) { return shares_batch_norm(*each.network()); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Bf16PartsTest, testing::ValuesIn(cases_with_order()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace tide::test
