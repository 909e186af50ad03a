// One training step of whole networks against PyTorch (golden/README.md): the loss, every
// gradient and every running statistic.
//
// On the cpu backend the gradients are read under `baseline`, where every storage keeps its
// memory for the whole step: exactly what the updates read. `liveness` must then give the
// same loss and leave the same bits in everything that persists. The reference interpreter
// runs the same tasks in double precision, so that an error of the graph (which both
// show) is told from one of a kernel (which only cpu shows).
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/reference/interpreter.h"
#include "golden/distance.h"

namespace tide {
namespace {

using golden::Reference;
using test::Distance;
using test::distance;
using test::Outcome;
Outcome interpret(const Reference& reference) {
  const NetworkPtr network = test::golden_network(reference);
  const auto step = std::make_shared<const Step>(build_step(network, test::golden_step(reference)));
  ReferenceInterpreter interpreter(step);
  const test::ParameterValues parameters = test::formula_values(*network);
  for (const Storage& storage : step->storages) {
    if (!storage.persistent || !storage.entry.valid()) continue;
    const std::vector<float>& values = parameters[step->tensor(storage.entry).parameter.index()];
    interpreter.set(storage.entry, {values.begin(), values.end()});
  }
  for (std::size_t t = 0; t < step->tensors.size(); ++t) {
    const Tensor& tensor = step->tensors[t];
    if (tensor.tensor_class != TensorClass::input) continue;
    std::vector<double> values(static_cast<std::size_t>(tensor.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      values[i] = tensor.role == Role::x ? static_cast<double>(golden::input_value(index))
                                         : golden::label_value(index, network->classes());
    }
    interpreter.set_logical(TensorId(t), values);
  }
  interpreter.run({.seed = 3,
                   .step = 0,
                   .learning_rate = 1,
                   .update_count = 1,
                   .first_sample = 0,
                   .global_batch = reference.batch});

  Outcome outcome;
  for (std::size_t t = 0; t < step->tensors.size(); ++t)
    if (step->tensors[t].tensor_class == TensorClass::metric)
      outcome.loss += interpreter.get(TensorId(t))[0] / static_cast<double>(reference.batch);
  test::for_each_gradient(*step, [&](TensorId id, const std::string& name) {
    outcome.gradients[name] = golden::summarize<double>(name, interpreter.get(id));
  });
  test::for_each_statistic(*step, [&](const Storage& storage, const std::string& name) {
    outcome.statistics[name] = golden::summarize<double>(name, interpreter.get(storage.exit));
  });
  return outcome;
}

class TorchGolden : public testing::TestWithParam<const char*> {};

// Rounding leaves 1e-5 to 3e-5 in most gradients. A ReLU whose input is within rounding of 0
// may fall on either side, though, and then everything before it differs by up to a few
// hundredths (golden/README.md). That depends on the order of sums and so on the number of
// threads: what is wrong is wrong with all of them, a chance hit is not.
TEST_P(TorchGolden, CpuMatches) {
  const Reference reference = golden::read_reference(TIDE_TEST_DATA, GetParam());
  const NetworkPtr network = test::golden_network(reference);
  const bool smooth = reference.statistics.empty();  // no ReLU: no excuse
  bool close = false;
  for (int threads = 1; threads <= 3 && !close; ++threads) {
    const std::unique_ptr<Backend> backend = test::cpu_backend(threads);
    if (!backend) GTEST_SKIP() << "this build has no cpu backend";
    test::Job baseline(test::plan_for(network, *backend, "baseline", test::golden_step(reference)), *backend);
    const Outcome outcome = test::run_on(baseline);
    const Distance found = distance(outcome, reference);
    EXPECT_LE(found.loss, 1e-6);
    EXPECT_LE(found.statistics.largest(), 1e-5) << found.statistics.worst;
    EXPECT_LE(found.gradients.largest(), smooth ? 1e-5 : 0.1) << found.gradients.worst;
    close = found.gradients.largest() <= 0.05 && found.gradients.of_half() <= 1e-4;

    test::Job liveness(test::plan_for(network, *backend, "liveness", test::golden_step(reference)), *backend);
    liveness.set_state(test::formula_values(*network));
    EXPECT_EQ(liveness.run(0, 1.0), outcome.loss);
    EXPECT_EQ(liveness.state_hash(), baseline.state_hash());
  }
  EXPECT_TRUE(close) << "half of the gradients are further off than rounding explains";
}

std::string case_name(const testing::TestParamInfo<const char*>& row) {
  const std::string_view file = row.param;
  return std::string(file.substr(0, file.find('.')));
}

INSTANTIATE_TEST_SUITE_P(All, TorchGolden,
                         testing::Values("resnet50.json", "inception_v3.json", "densenet121.json", "lstm.json"),
                         case_name);

class TorchInterpreted : public testing::TestWithParam<const char*> {};

TEST_P(TorchInterpreted, Matches) {
  const Reference reference = golden::read_reference(TIDE_TEST_DATA, GetParam());
  // PyTorch computed in double precision too; what is stored has 13 digits.
  const Distance found = distance(interpret(reference), reference);
  EXPECT_LE(found.loss, 1e-12);
  EXPECT_LE(found.gradients.largest(), 1e-8) << found.gradients.worst;
  EXPECT_LE(found.gradients.of_half(), 1e-11);
  EXPECT_LE(found.statistics.largest(), 1e-10) << found.statistics.worst;
}

INSTANTIATE_TEST_SUITE_P(All, TorchInterpreted, testing::Values("lstm.json"), case_name);
INSTANTIATE_TEST_SUITE_P(Slow, TorchInterpreted,
                         testing::Values("resnet50.json", "inception_v3.json", "densenet121.json"), case_name);

}  // namespace
}  // namespace tide
