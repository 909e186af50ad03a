// The memory of a session beyond the device: one host arena and one spill file for all of its
// step variants, of the size that the largest needs.
#include <gtest/gtest.h>

#include "plan/checker.h"
#include "planner/policy.h"
#include "step/build.h"
#include "support/spill.h"
#include "train/small_session.h"

namespace tide {
namespace {

using test::small_network;

// A plan with copies for the session's first variant.
Plan moving_plan(const NetworkPtr& network, std::int64_t batch, const SessionOptions& options) {
  const std::unique_ptr<Backend> backend = make_backend(options.backend, options.threads);
  Step step = build_step(network, {batch, options.rules, true, options.optimizer});
  backend->annotate(step);
  Plan plan = *make_plan(find_policy("liveness"), std::move(step), RooflineModel(generic_cpu()), {}).plan;
  const std::string fingerprint = plan.fingerprint;
  int moved = 0, spilled = 0;
  plan = testing_support::with_spills(testing_support::with_offloads(plan, 3, 100, moved), 5, 60, spilled);
  EXPECT_GT(moved, 2);
  EXPECT_GT(spilled, 0);
  EXPECT_EQ(plan.fingerprint, fingerprint);
  require_valid(plan);
  return plan;
}

TEST(SessionTiers, AMovingPlanTrainsTheSameWeights) {
  const NetworkPtr network = small_network();
  const test::SessionPtr plain = test::open_session(network, {{8, true}, {4, false}});
  test::run_steps(*plain, 8, 3);
  EXPECT_TRUE(plain->host_bytes().is_zero());
  EXPECT_TRUE(plain->disk_bytes().is_zero());
  for (const bool guard : {true, false}) {
    SessionOptions options = test::session_options();
    options.executor.guard = guard;
    options.executor.link_bytes_per_second = guard ? 0 : 1e9;
    options.plan = moving_plan(network, 8, options);
    const Plan plan = *options.plan;
    const test::SessionPtr session = test::open_session(network, {{8, true}, {4, false}}, options);
    test::run_steps(*session, 8, 3);
    EXPECT_EQ(session->weights_hash(), plain->weights_hash());
    EXPECT_EQ(session->evaluate(*test::first_digits(4), 4).loss, plain->evaluate(*test::first_digits(4), 4).loss);
    EXPECT_EQ(session->host_bytes(), summarize(plan).peak[Tier::host]);
    EXPECT_EQ(session->disk_bytes(), testing_support::disk_bytes(plan));
    EXPECT_FALSE(session->executor({8, true}).fetched().is_zero());
  }
}

TEST(SessionTiers, RefusesAPlanOverTheBudgets) {
  const NetworkPtr network = small_network();
  SessionOptions options = test::session_options();
  options.plan = moving_plan(network, 8, options);
  const auto error = [&] {
    return test::error_of([&] { static_cast<void>(Session::open(network, {{8, true}}, options)); });
  };
  options.planner.memory[Tier::host] = summarize(*options.plan).peak[Tier::host];
  options.planner.memory[Tier::disk] = testing_support::disk_bytes(*options.plan);
  EXPECT_EQ(error(), "");
  options.planner.memory[Tier::disk] = *options.planner.memory[Tier::disk] - Bytes(1);
  EXPECT_NE(error().find("bytes of disk memory"), std::string::npos) << error();
  options.planner.memory[Tier::disk].reset();
  options.planner.memory[Tier::host] = *options.planner.memory[Tier::host] - Bytes(1);
  EXPECT_NE(error().find("bytes of host memory"), std::string::npos) << error();
}

TEST(SessionTiers, SaysWhereItCannotSpill) {
  const NetworkPtr network = small_network();
  SessionOptions options = test::session_options();
  options.plan = moving_plan(network, 8, options);
  options.spill_directory = "/nowhere/at/all";
  const std::string error = test::error_of([&] { static_cast<void>(Session::open(network, {{8, true}}, options)); });
  EXPECT_NE(error.find("/nowhere/at/all"), std::string::npos) << error;
}

// Plans are made with the model that the session was given, or with the link's own speed.
class Counting final : public CostModel {
 public:
  [[nodiscard]] std::string name() const override { return "counting"; }
  [[nodiscard]] double task_seconds(const Step& /*step*/, TaskId /*task*/, std::size_t /*algorithm*/) const override {
    return 1;
  }
  [[nodiscard]] double copy_seconds(Bytes /*bytes*/, Tier /*from*/, Tier /*to*/) const override { return 2; }
};

TEST(SessionTiers, TheCostModelIsAnOption) {
  SessionOptions options = test::session_options();
  options.executor.link_bytes_per_second = 1e9;
  const test::SessionPtr throttled = test::open_session(small_network(), {{4, true}}, options);
  EXPECT_NEAR(throttled->cost().copy_seconds(Bytes(1'000'000'000), Tier::device, Tier::host), 1, 0.01);
  const auto counting = std::make_shared<const Counting>();
  auto opened = Session::open(
      small_network(), {{4, true}}, options,
      std::make_unique<Target>(make_backend(options.backend, options.threads), CostChoice{.model = counting}));
  EXPECT_EQ(&std::get<test::SessionPtr>(opened)->cost(), counting.get());
}

}  // namespace
}  // namespace tide
