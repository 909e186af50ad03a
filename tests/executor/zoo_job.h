// A network of the zoo, trained for two steps: what other plans have to arrive at, bit for bit.
#pragma once

#include "executor/job.h"
#include "executor/zoo_cases.h"
#include "zoo/zoo.h"

namespace tide::test {

class ZooJob : public testing::TestWithParam<ZooCase> {
 protected:
  static constexpr std::uint64_t kSteps = 2;

  void SetUp() override { set_up({}); }

  void set_up(const OptimizerOptions& optimizer) {
#ifdef __SANITIZE_ADDRESS__
    if (!GetParam().small)
      GTEST_SKIP() << "takes minutes under AddressSanitizer; the small networks take the same paths";
#endif
    backend_ = cpu_backend();
    if (!backend_ && !GetParam().small) GTEST_SKIP() << "too slow for the reference backend";
    if (!backend_) backend_ = make_backend("reference");
    network_ = shared_network(make_model(GetParam().model, GetParam().sample));
    values_ = formula_values(*network_);
    options_ = training_step(GetParam().batch, optimizer);
    options_.rules = GetParam().rules;
    Job job(*plan("baseline", {}).plan, *backend_, {.guard = false});
    job.set_state(values_);
    job.run_steps(kSteps);
    baseline_ = job.state_hash();
  }

  [[nodiscard]] PlanResult plan(std::string_view policy, const PlanningContext& planner) const {
    return result_for(network_, *backend_, policy, options_, planner);
  }

  // The same bits, with the memory and the copies that the plan says.
  void expect_baseline(const Plan& plan, std::string_view what, const ExecutorOptions& executor = {.guard = false},
                       std::unique_ptr<SpillFile> disk = nullptr) {
    SCOPED_TRACE(what);
    Job job(plan, *backend_, executor, std::move(disk));
    job.set_state(values_);
    job.run_steps(kSteps);
    EXPECT_EQ(job.state_hash(), baseline_);
    const PlanSummary summary = summarize(job.plan());
    EXPECT_EQ(job.executor().copied_out(), summary.offloaded_bytes);
    EXPECT_EQ(job.executor().copied_in(), summary.prefetched_bytes);
    EXPECT_EQ(job.executor().high_water(), summary.peak[Tier::device]);
  }

  std::unique_ptr<Backend> backend_;
  NetworkPtr network_;
  ParameterValues values_;
  StepOptions options_;
  std::uint64_t baseline_ = 0;
};

}  // namespace tide::test
