#include "plan/plan_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "plan/checker.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "support/offload.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

Plan plan_of(const NetworkPtr& network, std::uint32_t seed = 1) {
  const PlanResult result =
      make_plan(find_policy("liveness"),
                build_step(network, {.batch = 2, .rules = Rules::minimal, .training = true, .optimizer = {}}),
                RooflineModel(generic_cpu()), {});
  int moved = 0;
  return testing_support::with_offloads(*result.plan, seed, 40, moved);
}

TEST(PlanJson, RoundTripIsExact) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Plan plan = plan_of(testing_support::random_network(seed), seed);
    const std::string text = to_json(plan);
    const Plan again = plan_from_json(text);
    EXPECT_EQ(to_json(again), text);
    EXPECT_TRUE(check(again).empty());
    EXPECT_EQ(summarize(again).peak[Tier::device], summarize(plan).peak[Tier::device]);
    const RooflineModel cost(generic_cpu());
    EXPECT_EQ(simulate(again, cost).seconds, simulate(plan, cost).seconds);
  }
}

TEST(PlanJson, FilesRoundTrip) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "tide_plan_json_test.json";
  const Plan plan = plan_of(std::make_shared<Network>(make_model("lenet")));
  save_plan(plan, path);
  EXPECT_EQ(to_json(load_plan(path)), to_json(plan));
  std::filesystem::remove(path);
  EXPECT_THROW((void)load_plan(path), Error);
  EXPECT_THROW(save_plan(plan, "/nowhere/at/all.json"), Error);
}

// Any damage to the text either still gives a plan that passes the checker, or one Error
// of one line: never a crash.
TEST(PlanJson, DamagedTextNeverCrashes) {
  const std::string text = to_json(plan_of(testing_support::random_network(3)));
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    switch (random() % 4) {
      case 0: damaged.resize(random() % damaged.size()); break;
      case 1: damaged[random() % damaged.size()] = static_cast<char>(random() % 256); break;
      case 2: damaged.erase(random() % damaged.size(), 1 + random() % 20); break;
      default: {  // another number
        const std::size_t at = damaged.find_first_of("0123456789", random() % damaged.size());
        if (at != std::string::npos) damaged.replace(at, 1, std::to_string(random()));
      }
    }
    try {
      const Plan plan = plan_from_json(damaged);
      if (!check(plan).empty())
        ++refused;
      else
        (void)summarize(plan);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST(PlanJson, SaysWhatIsWrong) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      (void)plan_from_json(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("hello").find("damaged"), std::string::npos);
  EXPECT_NE(message("{}").find("not a Tidepool plan"), std::string::npos);
  EXPECT_NE(message(R"({"tidepool_plan": 99})").find("version"), std::string::npos);
  EXPECT_NE(message(R"({"tidepool_plan": 2})").find("policy"), std::string::npos);
}

TEST(Simulator, LanesOverlapAndWaitsHold) {
  const Plan plan = plan_of(testing_support::random_network(5), 5);
  const Timeline timeline = simulate(plan, RooflineModel(generic_cpu()));
  const Phase& phase = plan.phases.front();
  ASSERT_EQ(timeline.spans.size(), phase.ops.size());
  std::array<double, kLanes> lane_end{};
  double work = 0;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const Span& span = timeline.spans[i];
    double& end = lane_end[static_cast<std::size_t>(phase.ops[i].lane)];
    EXPECT_GE(span.start, end);
    for (const std::int32_t wait : phase.ops[i].waits)
      EXPECT_GE(span.start, timeline.spans[static_cast<std::size_t>(wait)].end);
    end = span.end;
    work += span.end - span.start;
    EXPECT_LE(span.end, timeline.seconds);
  }
  EXPECT_LE(timeline.seconds, work);
}

}  // namespace
}  // namespace tide
