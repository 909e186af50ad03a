// A plan that was saved, loaded and bound to a fresh step is as good as the original, and
// one that was made for something else is refused.
#include <gtest/gtest.h>

#include "plan/plan_json.h"
#include "planner/policy.h"
#include "train/small_session.h"

namespace tide {
namespace {

constexpr StepVariant kVariant{6, true};

// A plan of the small network, by way of a file.
Plan saved_plan(const std::string& policy, const SessionOptions& base = test::session_options()) {
  SessionOptions options = base;
  options.policy = policy;
  const test::SessionPtr session = test::open_session(test::small_network(), {kVariant}, options);
  const test::TemporaryFile file("plan.json");
  save_plan(session->plan(kVariant), file.path());
  return load_plan(file.path());
}

std::string error_with(const Plan& plan, const NetworkPtr& network, const StepVariant& variant,
                       SessionOptions options) {
  options.plan = plan;
  return test::error_of([&] { static_cast<void>(Session::open(network, {variant}, options)); });
}

TEST(PlanFile, GivesTheSameWeights) {
  const test::SessionPtr fresh = test::open_session(test::small_network(), {kVariant, {2, true}, {5, false}});
  const double loss = test::run_steps(*fresh, kVariant.batch, 3);
  for (const Policy& policy : policies()) {
    SessionOptions options = test::session_options();
    options.plan = saved_plan(std::string(policy.name));
    const test::SessionPtr bound =
        test::open_session(test::small_network(), {kVariant, {2, true}, {5, false}}, options);
    EXPECT_EQ(bound->plan(kVariant).policy, policy.name);
    EXPECT_EQ(test::run_steps(*bound, kVariant.batch, 3), loss) << policy.name;
    EXPECT_TRUE(test::same(bound->state(), fresh->state())) << policy.name;
    EXPECT_EQ(bound->executor(kVariant).high_water(), summarize(*options.plan).peak[Tier::device]) << policy.name;
    // The variants that are planned here work on the same parameters.
    EXPECT_EQ(test::run_steps(*bound, 2, 1), [&] {
      const test::SessionPtr other = test::open_session(test::small_network(), {kVariant, {2, true}});
      test::run_steps(*other, kVariant.batch, 3);
      return test::run_steps(*other, 2, 1);
    }());
  }
}

// What lasts from step to step is not for a plan to say.
TEST(PlanFile, IsRefusedWhereItForgetsAParameter) {
  const Plan plan = saved_plan("liveness");
  for (std::size_t s = 0; s < plan.phases.front().step->storages.size(); ++s) {
    if (!plan.phases.front().step->storages[s].persistent) continue;
    Plan damaged = plan;
    Step step = *damaged.phases.front().step;
    step.storages[s].persistent = false;
    damaged.phases.front().step = std::make_shared<const Step>(std::move(step));
    EXPECT_NE(error_with(damaged, test::small_network(), kVariant, test::session_options()), "") << s;
  }
}

TEST(PlanFile, IsRefusedByAnotherBatch) {
  const Plan plan = saved_plan("liveness");
  EXPECT_EQ(error_with(plan, test::small_network(), kVariant, test::session_options()), "");
  const std::string error = error_with(plan, test::small_network(), {7, true}, test::session_options());
  EXPECT_NE(error.find("batch=6"), std::string::npos) << error;
  EXPECT_NE(error.find("batch=7"), std::string::npos) << error;
  EXPECT_NE(error_with(plan, test::small_network(), {6, false}, test::session_options()), "");
}

TEST(PlanFile, IsRefusedByAnotherOptimizer) {
  const Plan plan = saved_plan("liveness");
  const auto error_of_change = [&](const std::function<void(OptimizerOptions&)>& change) {
    SessionOptions options = test::session_options();
    change(options.optimizer);
    return error_with(plan, test::small_network(), kVariant, options);
  };
  EXPECT_EQ(error_of_change([](OptimizerOptions&) {}), "");
  EXPECT_NE(error_of_change([](OptimizerOptions& o) { o.kind = OptimizerKind::adam; }), "");
  EXPECT_NE(error_of_change([](OptimizerOptions& o) { o.kind = OptimizerKind::nesterov; }), "");
  EXPECT_NE(error_of_change([](OptimizerOptions& o) { o.momentum = 0.5; }), "");
  EXPECT_NE(error_of_change([](OptimizerOptions& o) { o.weight_decay = 0.5; }), "");
  EXPECT_NE(error_of_change([](OptimizerOptions& o) { o.clip_norm = 1; }), "");
}

TEST(PlanFile, IsRefusedByAnotherNetworkRulesOrBackend) {
  const Plan plan = saved_plan("liveness");
  Network other = *test::small_network();
  for (Layer& layer : other.layers)
    if (layer.kind == LayerKind::dropout) layer.options = DropoutOptions{.rate = 0.31};
  const auto network = std::make_shared<const Network>(std::move(other));
  EXPECT_NE(error_with(plan, network, kVariant, test::session_options()), "");
  SessionOptions options = test::session_options();
  options.rules = Rules::superneurons;
  EXPECT_NE(error_with(plan, test::small_network(), kVariant, options), "");
  options = test::session_options();
  options.backend = "null";
  EXPECT_NE(error_with(plan, test::small_network(), kVariant, options), "");
}

TEST(PlanFile, IsRefusedByASmallerBudget) {
  const Plan plan = saved_plan("liveness");
  SessionOptions options = test::session_options();
  options.planner.memory[Tier::device] = summarize(plan).peak[Tier::device];
  EXPECT_EQ(error_with(plan, test::small_network(), kVariant, options), "");
  options.planner.memory[Tier::device] = *options.planner.memory[Tier::device] - Bytes(1);
  EXPECT_NE(error_with(plan, test::small_network(), kVariant, options).find("the budget is"), std::string::npos);
}

TEST(PlanFile, IsRefusedWhereItWouldBeWrong) {
  Plan plan = saved_plan("liveness");
  // The last stay of the table moves on top of the parameters.
  plan.phases.front().residencies.back().address = Bytes();
  EXPECT_NE(error_with(plan, test::small_network(), kVariant, test::session_options()).find("not valid"),
            std::string::npos);
}

}  // namespace
}  // namespace tide
