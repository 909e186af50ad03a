// The reference's gradients against central differences of its own loss, in double.
#include "backend/network_cases.h"
#include "backend/task_runner.h"

namespace tide::test {
namespace {

// What the gradients are of: every loss, divided by the global batch and its terms.
double total_loss(const Step& step, ReferenceInterpreter& interpreter, const StepState& state) {
  double total = 0;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    if (step.tasks[t].kind != TaskKind::forward) continue;
    interpreter.run_task(TaskId(t), state);
    const LayerKind kind = step.layer_kind(step.tasks[t]);
    if (!description_of(kind).loss) continue;
    const Shape shape = step.network->layer(step.tasks[t].layer).outputs[0];
    const std::int64_t terms = kind == LayerKind::softmax_cross_entropy ? shape.positions() : shape.per_sample();
    total +=
        interpreter.get(step.operands_of(TaskId(t)).back().tensor)[0] / static_cast<double>(state.global_batch * terms);
  }
  return total;
}

void check_gradients(const StepPtr& step) {
  const StepState state = test_state(*step);
  ReferenceInterpreter interpreter(step);
  fill_inputs(*step, interpreter);
  interpreter.run(state);
  int checked = 0;
  for (std::size_t t = 0; t < step->tensors.size(); ++t) {
    const Tensor& gradient = step->tensors[t];
    if (gradient.tensor_class != TensorClass::parameter_gradient) continue;
    const auto is_value = [&](const Storage& storage) {
      return storage.tensor_class == TensorClass::parameter &&
             step->tensor(storage.entry).parameter == gradient.parameter;
    };
    const auto storage = std::find_if(step->storages.begin(), step->storages.end(), is_value);
    ASSERT_NE(storage, step->storages.end());
    const std::vector<double> values = interpreter.get(storage->entry);
    const std::vector<double> expected = interpreter.get(TensorId(t));
    // A handful of elements, spread over the tensor.
    for (std::size_t i = 0; i < values.size(); i += std::max<std::size_t>(1, values.size() / 7)) {
      constexpr double kStep = 1e-5;
      std::vector<double> moved = values;
      moved[i] = values[i] + kStep;
      interpreter.set(storage->entry, moved);
      const double above = total_loss(*step, interpreter, state);
      moved[i] = values[i] - kStep;
      interpreter.set(storage->entry, moved);
      const double below = total_loss(*step, interpreter, state);
      interpreter.set(storage->entry, values);
      EXPECT_NEAR((above - below) / (2 * kStep), expected[i], 1e-8 + 1e-6 * std::abs(expected[i]))
          << tensor_name(*step, TensorId(t)) << " " << i;
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

class GradientTest : public testing::TestWithParam<NetworkCase> {};

TEST_P(GradientTest, IsTheSlopeOfTheLoss) {
  const NetworkPtr network = GetParam().network({.label_smoothing = 0.2, .weight = 1.5});
  for (const Rules rules : {Rules::minimal, Rules::superneurons})
    check_gradients(std::make_shared<const Step>(build_step(network, step_options(GetParam().batch, rules))));
}

INSTANTIATE_TEST_SUITE_P(Cases, GradientTest, testing::ValuesIn(all_cases()),
                         [](const auto& entry) { return entry.param.name; });

TEST(SeveralLossesTest, GradientIsTheSlopeOfTheirSum) {
  Builder net("losses");
  const Value x = net.convolution(net.input({1, 3, 4, 3}), {.channels = 4});
  net.softmax_cross_entropy(net.global_average_pool(x), {.weight = 0.3, .label_offset = 12});
  net.softmax_cross_entropy(net.tanh(x), {.label_smoothing = 0.1});
  const auto network = std::make_shared<const Network>(std::move(net).build());
  check_gradients(std::make_shared<const Step>(build_step(network, step_options(3))));
}

}  // namespace
}  // namespace tide::test
