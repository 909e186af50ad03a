// The policies that move and recompute, executed: copies run on their own threads over a
// throttled link, and yet not a bit of the weights differs from `baseline`'s, as many bytes
// move as the plan says, and the memory taken is the planned peak.
#include <gtest/gtest.h>

#include <cctype>

#include "executor/job.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct Case {
  const char* model;
  Shape sample;
  std::int64_t batch = 2;
  Rules rules = Rules::minimal;
  bool small = false;  // enough for the reference backend
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.model; }
};

Bytes disk_bytes(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  Bytes top;
  for (const Residency& r : phase.residencies)
    if (r.tier == Tier::disk) top = std::max(top, r.address + aligned_bytes(phase, r));
  return top;
}

class ExecutedPolicies : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::uint64_t kSteps = 2;

  void SetUp() override {
    backend_ = test::cpu_backend();
    if (!backend_ && !GetParam().small) GTEST_SKIP() << "too slow for the reference backend";
    if (!backend_) backend_ = make_backend("reference");
    network_ = test::shared_network(make_model(GetParam().model, GetParam().sample));
    values_ = test::formula_values(*network_);
    options_ = test::training_step(GetParam().batch);
    options_.rules = GetParam().rules;
    test::Job job(test::plan_for(network_, *backend_, "baseline", options_), *backend_, {.guard = false});
    job.set_state(values_);
    job.run_steps(kSteps);
    baseline_ = job.state_hash();
  }

  [[nodiscard]] PlanResult plan(std::string_view policy, const PlannerOptions& planner) const {
    return test::result_for(network_, *backend_, policy, options_, planner);
  }

  void expect_baseline(const Plan& plan, double link, std::string_view what) {
    SCOPED_TRACE(fmt::format("{} at {} GB/s", what, link / 1e9));
    const Bytes disk = disk_bytes(plan);
    test::Job job(plan, *backend_, {.guard = false, .link_bytes_per_second = link},
                  disk.is_zero() ? nullptr : std::make_unique<SpillFile>("", disk));
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
};

TEST_P(ExecutedPolicies, TechniquesAppliedAlways) {
  PlannerOptions planner;
  planner.cache = false;
  expect_baseline(*plan("offload", planner).plan, 4e9, "offload");
  for (const Recompute recompute : {Recompute::none, Recompute::speed, Recompute::memory, Recompute::cost_aware}) {
    planner.recompute = recompute;
    expect_baseline(*plan("superneurons", planner).plan, 4e9, recompute_name(recompute));
  }
}

TEST_P(ExecutedPolicies, WithinABudget) {
  PlannerOptions planner;
  const Bytes high = summarize(*plan("liveness", planner).plan).peak_bytes;
  planner.memory = Bytes(kAlignment);
  const Bytes low = plan("superneurons", planner).floor;
  const double links[] = {1e9, 2e9, 4e9};
  std::size_t turn = 0;
  for (const std::int64_t percent : {0, 25, 75}) {
    const std::int64_t between = low.count() + (high - low).count() / 100 * percent;
    planner.memory = Bytes(between / kAlignment * kAlignment);
    const Plan made = *plan("superneurons", planner).plan;
    EXPECT_LE(summarize(made).peak_bytes, *planner.memory);
    expect_baseline(made, links[turn++ % 3], fmt::format("superneurons at {} bytes", between));
  }
  // At the floor with hardly any host memory: the rest goes to disk.
  planner.memory = low;
  planner.disk_memory = Bytes(std::int64_t{1} << 40);
  planner.host_memory = Bytes(kAlignment);
  const PlanResult refused = plan("superneurons", planner);
  if (refused.plan) return;  // nothing had to leave
  planner.host_memory = refused.host_floor;
  const PlanResult spilled = plan("superneurons", planner);
  ASSERT_TRUE(spilled.plan);
  EXPECT_FALSE(disk_bytes(*spilled.plan).is_zero());
  expect_baseline(*spilled.plan, 4e9, "superneurons with a disk");
}

std::string case_name(const testing::TestParamInfo<Case>& row) {
  std::string name = row.param.model;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

constexpr Rules kPaper = Rules::superneurons;

INSTANTIATE_TEST_SUITE_P(Zoo, ExecutedPolicies,
                         testing::Values(Case{"lenet", {1, 1, 28, 28}, 4},
                                         Case{"digits", {1, 1, 8, 8}, 3, Rules::minimal, true},
                                         Case{"digits@11", {1, 1, 8, 8}, 7, kPaper}, Case{"alexnet@10", {1, 3, 67, 67}},
                                         Case{"vgg16@10", {1, 3, 32, 32}}, Case{"resnet18@10", {1, 3, 32, 32}},
                                         Case{"resnet50@10", {1, 3, 64, 48}}, Case{"preresnet:29@10", {1, 3, 32, 32}},
                                         Case{"inception-v3@10", {1, 3, 75, 75}},
                                         Case{"densenet121@10", {1, 3, 32, 32}},
                                         Case{"lstm:2,16,4@11", {1, 24, 1, 1}, 5, Rules::minimal, true},
                                         Case{"superneurons/resnet50@10", {1, 3, 67, 67}, 2, kPaper}),
                         case_name);

}  // namespace
}  // namespace tide
