// Parameters and optimizer state that rest in host memory, executed: the same bits as with
// `baseline`, as many bytes moved as planned, at the smallest budget and above it.
#include <gtest/gtest.h>

#include "executor/job.h"
#include "executor/zoo_cases.h"
#include "planner/resting.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using test::ZooCase;

class RestingParameters : public testing::TestWithParam<ZooCase> {
 protected:
  static constexpr std::uint64_t kSteps = 2;

  void SetUp() override {
    backend_ = test::fastest_backend();
    network_ = test::shared_network(make_model(GetParam().model, GetParam().sample));
    values_ = test::formula_values(*network_);
    options_ = test::training_step(GetParam().batch, {.kind = OptimizerKind::adam});
    options_.rules = GetParam().rules;
    test::Job job(test::plan_for(network_, *backend_, "baseline", options_), *backend_, {.guard = false});
    job.set_state(values_);
    job.run_steps(kSteps);
    baseline_ = job.state_hash();
    for (const Storage& storage : job.step().storages) persistent_ += storage.persistent ? 1 : 0;
  }

  // Everything that persists rests, small things included.
  [[nodiscard]] PlannerOptions all_resting() const {
    PlannerOptions planner;
    planner.rest_in_host.emplace(persistent_, true);
    return planner;
  }

  [[nodiscard]] PlanResult plan(std::string_view policy, const PlannerOptions& planner) const {
    return test::result_for(network_, *backend_, policy, options_, planner);
  }

  void expect_baseline(const Plan& plan, const ExecutorOptions& executor, std::string_view what) {
    SCOPED_TRACE(what);
    test::Job job(plan, *backend_, executor);
    job.set_state(values_);
    job.run_steps(kSteps);
    EXPECT_EQ(job.state_hash(), baseline_);
    const PlanSummary summary = summarize(job.plan());
    EXPECT_EQ(job.executor().copied_out(), summary.offloaded_bytes);
    EXPECT_EQ(job.executor().copied_in(), summary.prefetched_bytes);
    EXPECT_EQ(job.executor().high_water(), summary.peak_bytes);
  }

  std::unique_ptr<Backend> backend_;
  NetworkPtr network_;
  test::ParameterValues values_;
  StepOptions options_;
  std::uint64_t baseline_ = 0;
  std::size_t persistent_ = 0;
};

TEST_P(RestingParameters, EverythingAtTheFloorAndAbove) {
  PlannerOptions planner = all_resting();
  planner.memory = Bytes(kAlignment);
  const Bytes floor = plan("superneurons", planner).floor;
  for (const std::int64_t percent : {100, 120, 300}) {
    planner.memory = Bytes(floor.count() * percent / 100);
    const Plan made = *plan("superneurons", planner).plan;
    EXPECT_LE(summarize(made).peak_bytes, *planner.memory);
    expect_baseline(made, {.guard = percent == 100}, fmt::format("at {}% of the floor", percent));
    expect_baseline(made, {.guard = false, .link_bytes_per_second = 2e9}, fmt::format("at {}%, over a link", percent));
  }
}

TEST_P(RestingParameters, TechniquesAppliedAlways) {
  PlannerOptions planner = all_resting();
  planner.cache = false;
  for (const Recompute recompute : {Recompute::none, Recompute::memory}) {
    planner.recompute = recompute;
    expect_baseline(*plan("superneurons", planner).plan, {.guard = false}, recompute_name(recompute));
  }
  expect_baseline(*plan("offload", planner).plan, {.guard = false}, "offload");
}

// Every second one, so that both kinds of place meet in one task.
TEST_P(RestingParameters, SomeOfIt) {
  PlannerOptions planner = all_resting();
  for (std::size_t s = 0; s < persistent_; s += 2) (*planner.rest_in_host)[s] = false;
  planner.memory = Bytes(kAlignment);
  planner.memory = plan("superneurons", planner).floor;
  const Plan made = *plan("superneurons", planner).plan;
  const std::vector<bool> rested = rest_in_host(made);
  EXPECT_NE(std::count(rested.begin(), rested.end(), true), 0);
  EXPECT_NE(std::count(rested.begin(), rested.end(), false), 0);
  expect_baseline(made, {.guard = true}, "every second one");
}

INSTANTIATE_TEST_SUITE_P(Zoo, RestingParameters,
                         testing::Values(ZooCase{"digits", {1, 1, 8, 8}, 3, Rules::minimal, true},
                                         ZooCase{"digits@11", {1, 1, 8, 8}, 7, Rules::superneurons, true},
                                         ZooCase{"lstm:2,16,4@11", {1, 24, 1, 1}, 5, Rules::minimal, true}),
                         test::zoo_case_name);

}  // namespace
}  // namespace tide
