// Sub-batches between batch norms that have the statistics of the whole batch: gradients, loss and
// running statistics are those of the whole batch, up to the order of sums.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/reference/interpreter.h"
#include "executor/job.h"
#include "plan/checker.h"
#include "plan/plan_json.h"
#include "planner/policy.h"
#include "support/on_device.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

constexpr std::int64_t kExactBatch = 7;

Step cut_step(const NetworkPtr& network, const Backend& backend, StepOptions options, std::int64_t sub_batch) {
  options.sub_batch = sub_batch;
  Step step = build_step(network, options);
  backend.annotate(step);
  return step;
}

StepOptions step_options() {
  OptimizerOptions optimizer;
  optimizer.kind = OptimizerKind::sgd;
  return test::training_step(kExactBatch, optimizer);
}

// What one step adds to everything that persists, and its loss.
struct Outcome {
  double loss = 0;
  std::vector<std::vector<float>> changes;
  std::vector<std::string> names;
};

Outcome run(const Plan& plan, Backend& backend, const Network& network, double rate) {
  test::Job job(plan, backend);
  const test::ParameterValues values = test::formula_values(network);
  job.set_state(values);
  Outcome outcome;
  outcome.loss = job.run(0, rate);
  EXPECT_EQ(job.executor().high_water(), summarize(plan).peak[Tier::device]);
  for (const Storage& storage : job.step().storages) {
    if (!storage.persistent || !storage.entry.valid()) continue;
    const std::size_t parameter = job.step().tensor(storage.entry).parameter.index();
    outcome.names.push_back(network.parameters[parameter].name);
    outcome.changes.push_back(job.read(storage.entry));
    for (std::size_t i = 0; i < outcome.changes.back().size(); ++i) outcome.changes.back()[i] -= values[parameter][i];
  }
  return outcome;
}

void expect_close(const Outcome& cut, const Outcome& whole, double tolerance) {
  EXPECT_NEAR(cut.loss, whole.loss, 1e-5 * std::abs(whole.loss));
  ASSERT_EQ(cut.names, whole.names);
  // What is next to nothing beside the others is rounding: scale and shift of a batch norm before
  // another one have no gradient at all.
  double largest = 0;
  const auto norm = [](const std::vector<float>& values) {
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(sum);
  };
  for (const auto& change : whole.changes) largest = std::max(largest, norm(change));
  for (std::size_t p = 0; p < whole.changes.size(); ++p) {
    std::vector<float> difference = cut.changes[p];
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= whole.changes[p][i];
    EXPECT_LE(norm(difference), tolerance * std::max(norm(whole.changes[p]), 1e-4 * largest)) << whole.names[p];
  }
}

struct Case {
  const char* model;
  Shape sample;
  double float_tolerance;  // rounding grows through the layers of a deep network, whole or cut
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.model; }
};

// A step in double precision, where nothing hides behind rounding: all that persists, afterwards.
std::vector<std::vector<double>> interpret(const NetworkPtr& network, std::int64_t sub_batch) {
  StepOptions options = step_options();
  options.sub_batch = sub_batch;
  const auto made = std::make_shared<const Step>(build_step(network, options));
  const Step& step = *made;
  ReferenceInterpreter interpreter(made);
  const test::ParameterValues values = test::formula_values(*network);
  for (const Storage& storage : step.storages)
    if (storage.persistent && storage.entry.valid()) {
      const std::vector<float>& given = values[step.tensor(storage.entry).parameter.index()];
      interpreter.set_logical(storage.entry, std::vector<double>(given.begin(), given.end()));
    }
  // Sub-batches stand in their order.
  std::int64_t next_value = 0, next_label = 0;
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const Tensor& tensor = step.tensors[t];
    if (tensor.tensor_class != TensorClass::input) continue;
    std::vector<double> filled(static_cast<std::size_t>(tensor.shape.elements()));
    for (double& value : filled)
      value = tensor.role == Role::x ? static_cast<double>(golden::input_value(next_value++))
                                     : static_cast<double>(golden::label_value(next_label++, network->classes()));
    interpreter.set_logical(TensorId(t), filled);
  }
  interpreter.run(
      {.seed = 3, .step = 0, .learning_rate = 1, .update_count = 1, .first_sample = 0, .global_batch = kExactBatch});
  std::vector<std::vector<double>> result;
  for (const Storage& storage : step.storages)
    if (storage.persistent) result.push_back(interpreter.get_logical(storage.exit));
  return result;
}

void expect_equal(const NetworkPtr& network, std::int64_t sub_batch) {
  const auto whole = interpret(network, 0), cut = interpret(network, sub_batch);
  ASSERT_EQ(cut.size(), whole.size());
  for (std::size_t s = 0; s < whole.size(); ++s) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < whole[s].size(); ++i) {
      difference += std::pow(cut[s][i] - whole[s][i], 2);
      norm += std::pow(whole[s][i], 2);
    }
    EXPECT_LE(std::sqrt(difference), 1e-9 * std::max(std::sqrt(norm), 1e-6)) << s;
  }
}

class ExactBatchNorm : public testing::TestWithParam<Case> {};

TEST_P(ExactBatchNorm, IsTheWholeBatchInDoublePrecision) {
  const NetworkPtr network = test::shared_network(make_model(GetParam().model, GetParam().sample));
  expect_equal(network, 3);
}

// Executed within the smallest memory each policy can work with.
TEST_P(ExactBatchNorm, HasTheGradientsOfTheWholeBatchWithinAnyBudget) {
  const NetworkPtr network = test::shared_network(make_model(GetParam().model, GetParam().sample));
  const RooflineModel cost(generic_cpu());
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  const Outcome whole = run(test::plan_for(network, *backend, "baseline", step_options()), *backend, *network, 64);
  for (const std::int64_t sub_batch : {std::int64_t{1}, std::int64_t{3}, kExactBatch}) {
    for (const char* policy : {"superneurons", "modnn", "auto"}) {
      if (sub_batch != 3 && policy != std::string_view("superneurons"))
        continue;  // one size with all of them is enough
      SCOPED_TRACE(fmt::format("{} in sub-batches of {}", policy, sub_batch));
      const Step step = cut_step(network, *backend, step_options(), sub_batch);
      PlanningContext planner = test::on_device();
      planner.memory[Tier::device] = Bytes(kAlignment);
      const PlanResult floor = make_plan(find_policy(policy), step, cost, planner);
      planner.memory[Tier::device] = floor.floor[Tier::device];
      const PlanResult result = make_plan(find_policy(policy), step, cost, planner);
      ASSERT_TRUE(result.plan);
      EXPECT_TRUE(check(plan_from_json(to_json(*result.plan))).empty());
      expect_close(run(*result.plan, *backend, *network, 64), whole, GetParam().float_tolerance);
    }
  }
}

TEST_P(ExactBatchNorm, LeavesTheDeviceBetweenItsSegments) {
  const NetworkPtr network = test::shared_network(make_model(GetParam().model, GetParam().sample));
  const auto floor = [&](std::int64_t sub_batch) {
    StepOptions options = step_options();
    options.batch = 32;
    options.sub_batch = sub_batch;
    PlanningContext planner = test::on_device();
    planner.memory[Tier::device] = Bytes(kAlignment);
    return make_plan(find_policy("superneurons"), build_step(network, options), RooflineModel(generic_cpu()), planner)
        .floor[Tier::device];
  };
  EXPECT_LT(floor(2), floor(32));
}

INSTANTIATE_TEST_SUITE_P(Zoo, ExactBatchNorm,
                         testing::Values(Case{"digits", {1, 1, 8, 8}, 1e-5}, Case{"resnet18@10", {1, 3, 16, 16}, 1e-4},
                                         Case{"preresnet:29@10", {1, 3, 8, 8}, 1e-3}));

TEST(ExactBatchNormSteps, OfRandomNetworksAreTheSameInSubBatches) {
  int normalized = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const NetworkPtr network = testing_support::random_network(seed);
    SCOPED_TRACE(seed);
    for (const Layer& layer : network->layers) normalized += layer.kind == LayerKind::batch_norm ? 1 : 0;
    expect_equal(network, 1 + static_cast<std::int64_t>(seed % 3));
  }
  EXPECT_GT(normalized, 10);
}

TEST(ExactBatchNormSteps, RefuseWhatTheyCannotBe) {
  const NetworkPtr network = test::shared_network(make_model("digits"));
  EXPECT_THROW((void)build_step(network, {.sub_batch = -1}), Error);
  EXPECT_THROW((void)build_step(network, {.batch = 4, .training = false, .sub_batch = 2}), Error);
  EXPECT_THROW((void)build_step(network, {.batch = 4, .rules = Rules::superneurons, .sub_batch = 2}), Error);
}

}  // namespace
}  // namespace tide
