// The policies that recompute by mirror counts, and vDNN's, executed: the weights after some steps
// are baseline's bit for bit, and the memory taken is the planned peak.
#include <gtest/gtest.h>

#include "executor/job.h"
#include "executor/zoo_cases.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using test::ZooCase;

class Recomputing : public testing::TestWithParam<ZooCase> {
 protected:
  static constexpr std::uint64_t kSteps = 2;

  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    if (!GetParam().small)
      GTEST_SKIP() << "takes minutes under AddressSanitizer; the small networks take the same paths";
#endif
    backend_ = test::cpu_backend();
    if (!backend_ && !GetParam().small) GTEST_SKIP() << "too slow for the reference backend";
    if (!backend_) backend_ = make_backend("reference");
    network_ = test::shared_network(make_model(GetParam().model, GetParam().sample));
    values_ = test::formula_values(*network_);
    options_ = test::training_step(GetParam().batch);
    options_.rules = GetParam().rules;
    baseline_ = hash_after_steps(*plan("baseline", {}).plan);
  }

  [[nodiscard]] PlanResult plan(std::string_view policy, const PlannerOptions& planner) const {
    return test::result_for(network_, *backend_, policy, options_, planner);
  }

  std::uint64_t hash_after_steps(const Plan& plan, const ExecutorOptions& how = {.guard = false}) {
    test::Job job(plan, *backend_, how);
    job.set_state(values_);
    job.run_steps(kSteps);
    EXPECT_EQ(job.executor().high_water(), summarize(plan).peak_bytes);
    return job.state_hash();
  }

  std::unique_ptr<Backend> backend_;
  NetworkPtr network_;
  test::ParameterValues values_;
  StepOptions options_;
  std::uint64_t baseline_ = 0;
};

TEST_P(Recomputing, ByAnyPolicy) {
  for (const char* policy : {"drop-cheap", "sublinear", "recursive"}) {
    const PlanResult smallest = plan(policy, {});
    EXPECT_EQ(hash_after_steps(*smallest.plan), baseline_) << policy;
    const Bytes low = smallest.floor, high = plan("liveness", {}).floor;
    if (high < low) continue;
    PlannerOptions planner;
    planner.memory = Bytes((low.count() + (high - low).count() / 2) / kAlignment * kAlignment);
    const Plan made = *plan(policy, planner).plan;
    EXPECT_LE(summarize(made).peak_bytes, *planner.memory);
    EXPECT_EQ(hash_after_steps(made), baseline_) << policy << " within a budget";
  }
  // And by counts of the user.
  PlannerOptions planner;
  const Step step = build_step(network_, options_);
  for (std::size_t l = 1; l < step.layer_names.size(); ++l)
    planner.mirror.push_back({step.layer_names[l], static_cast<std::int32_t>(l * 7 % 4)});
  const Plan made = *plan("sublinear", planner).plan;
  EXPECT_GT(summarize(made).recomputed_tasks, 0);
  EXPECT_EQ(hash_after_steps(made), baseline_);
}

TEST_P(Recomputing, VdnnOverASlowLink) {
  for (const char* policy : {"vdnn-conv", "vdnn-all"}) {
    const Plan made = *plan(policy, {}).plan;
    EXPECT_EQ(hash_after_steps(made, {.guard = false, .link_bytes_per_second = 2e9}), baseline_) << policy;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Recomputing, test::few_zoo_cases(), test::zoo_case_name);
INSTANTIATE_TEST_SUITE_P(Slow, Recomputing, test::zoo_cases(), test::zoo_case_name);

}  // namespace
}  // namespace tide
