// Batches cut into sub-batches: gradients add up to those of the whole batch, whatever the size of
// the sub-batches and whichever policy plans the rounds.
#include "planner/search/rounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "executor/job.h"
#include "plan/checker.h"
#include "plan/plan_json.h"
#include "support/on_device.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct Case {
  const char* model;
  Shape sample;
  std::int64_t batch;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.model; }
};

class Rounds : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    network_ = test::shared_network(make_model(GetParam().model, GetParam().sample));
    values_ = test::formula_values(*network_);
  }

  [[nodiscard]] StepOptions step_options() const {
    OptimizerOptions optimizer;
    optimizer.kind = OptimizerKind::sgd;
    return test::training_step(GetParam().batch, optimizer);
  }

  [[nodiscard]] PlanResult cut(const Backend& backend, std::string_view policy, const StepOptions& options,
                               std::int64_t sub_batch, std::optional<Bytes> memory = {}) const {
    PlanningContext planner = test::on_device();
    planner.memory[Tier::device] = memory;
    planner.batch = SubBatches{.samples = sub_batch};
    planner.cut = [&](std::int64_t samples, Part part) {
      StepOptions piece = options;
      piece.batch = samples;
      piece.part = part;
      Step step = build_step(network_, piece);
      backend.annotate(step);
      return step;
    };
    return test::result_for(network_, backend, policy, options, planner);
  }

  // What one step of plain SGD adds to each parameter: its gradient, times a rate that lifts it above the
  // rounding of the parameter.
  [[nodiscard]] test::ParameterValues gradients_of(const Plan& plan, Backend& backend, double& loss) const {
    test::Job job(plan, backend);
    job.set_state(values_);
    loss = job.run(0, 4096);
    EXPECT_EQ(job.executor().high_water(), summarize(plan).peak[Tier::device]);
    test::ParameterValues result(values_.size());
    for (const Storage& storage : job.step().storages) {
      if (!storage.persistent || !storage.entry.valid()) continue;
      const std::size_t parameter = job.step().tensor(storage.entry).parameter.index();
      result[parameter] = job.read(storage.entry);
      for (std::size_t i = 0; i < result[parameter].size(); ++i) result[parameter][i] -= values_[parameter][i];
    }
    return result;
  }

  NetworkPtr network_;
  test::ParameterValues values_;
};

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

TEST_P(Rounds, AddUpToTheWholeBatch) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  const StepOptions options = step_options();
  double whole_loss = 0;
  const test::ParameterValues whole =
      gradients_of(test::plan_for(network_, *backend, "baseline", options), *backend, whole_loss);
  for (const std::int64_t sub_batch : {std::int64_t{1}, std::int64_t{2}, GetParam().batch - 1}) {
    for (const char* policy : {"liveness", "superneurons", "sublinear", "modnn", "auto"}) {
      if (sub_batch != 2 && policy != std::string_view("liveness")) continue;  // one size with all of them is enough
      SCOPED_TRACE(fmt::format("{} in sub-batches of {}", policy, sub_batch));
      const PlanResult result = cut(*backend, policy, options, sub_batch);
      ASSERT_TRUE(result.plan);
      EXPECT_EQ(result.plan->numerics, Numerics::reordered);
      EXPECT_EQ(summarize(*result.plan).rounds, (GetParam().batch + sub_batch - 1) / sub_batch);
      double loss = 0;
      const test::ParameterValues sum = gradients_of(*result.plan, *backend, loss);
      EXPECT_NEAR(loss, whole_loss, 1e-5 * std::abs(whole_loss));
      for (std::size_t p = 0; p < whole.size(); ++p)
        EXPECT_LE(distance(sum[p], whole[p]), 1e-5) << network_->parameters[p].name;
    }
  }
}

TEST_P(Rounds, TakeLessMemoryThanTheWholeBatch) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  const StepOptions options = step_options();
  const Bytes whole = test::result_for(network_, *backend, "superneurons", options, test::on_device(Bytes(kAlignment)))
                          .floor[Tier::device];
  const Bytes least = cut(*backend, "superneurons", options, 1, Bytes(kAlignment)).floor[Tier::device];
  // Gradients persist in rounds, so that a small batch of a network with many parameters gains nothing.
  Bytes gradients;
  for (const Parameter& parameter : network_->parameters)
    gradients += bytes_of(parameter.shape, DataType::f32).aligned();
  EXPECT_LT(least, whole + gradients);
  const PlanResult tight = cut(*backend, "superneurons", options, 1, least);
  ASSERT_TRUE(tight.plan);
  double loss = 0, whole_loss = 0;
  (void)gradients_of(*tight.plan, *backend, loss);
  (void)gradients_of(test::plan_for(network_, *backend, "baseline", options), *backend, whole_loss);
  EXPECT_NEAR(loss, whole_loss, 1e-5 * std::abs(whole_loss));
}

TEST_P(Rounds, ComeBackFromAFile) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  const PlanResult result = cut(*backend, "liveness", step_options(), 2);
  const Plan loaded = plan_from_json(to_json(*result.plan));
  EXPECT_TRUE(check(loaded).empty());
  EXPECT_EQ(loaded.phases.size(), result.plan->phases.size());
  EXPECT_EQ(loaded.numerics, Numerics::reordered);
  for (std::size_t p = 0; p < loaded.phases.size(); ++p) {
    EXPECT_EQ(loaded.phases[p].repeat, result.plan->phases[p].repeat);
    EXPECT_EQ(loaded.phases[p].step->options.part, result.plan->phases[p].step->options.part);
  }
}

TEST_P(Rounds, AreRefusedUnlessAllowed) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  PlanningContext planner = test::on_device();
  planner.batch = SubBatches{.allowed = Numerics::identical, .samples = 1};
  planner.cut = [](std::int64_t, Part) { return Step{}; };
  EXPECT_THROW((void)test::result_for(network_, *backend, "liveness", step_options(), planner), Error);
}

INSTANTIATE_TEST_SUITE_P(Zoo, Rounds,
                         testing::Values(Case{"lenet", {1, 1, 28, 28}, 5}, Case{"alexnet@10", {1, 3, 67, 67}, 3},
                                         Case{"vgg16@10", {1, 3, 32, 32}, 3},
                                         Case{"lstm:2,16,4@11", {1, 24, 1, 1}, 7}));

}  // namespace
}  // namespace tide
