// What plans are timed by is chosen in one place, in words that people use.
#include "train/cost_choice.h"

#include <cstdlib>

#include "plan/plan_json.h"
#include "planner/policy.h"
#include "support/recording_backend.h"
#include "train/small_session.h"

namespace tide::test {
namespace {

double link_of(const CostModel& cost) {
  return 1e9 / cost.copy_seconds(Bytes(1'000'000'000), Tier::device, Tier::host);
}

std::unique_ptr<Backend> backend_called(const std::string& name, const std::string& description) {
  return std::make_unique<RecordingBackend>(1, name, description);
}

TEST(CostChoice, OfAProcessorIsModelled) {
  const auto backend = make_backend("reference");
  for (const char* const profile : {"", "none"}) {
    const CostChoice choice = choose_cost(*backend, {.profile = profile});
    EXPECT_EQ(choice.source, "modelled (generic-cpu)");
    EXPECT_EQ(choice.warning, "");
    EXPECT_EQ(choice.measured, nullptr);
    EXPECT_NEAR(link_of(*choice.model), 10e9, 1e7);
  }
}

TEST(CostChoice, ALinkIsSlowedDownOnABackendAndReplacedOnADevice) {
  const auto backend = make_backend("reference");
  EXPECT_NEAR(link_of(*choose_cost(*backend, {.link_bytes_per_second = 2e9}).model), 2e9, 1e7);
  EXPECT_NEAR(link_of(*choose_cost(*backend, {.link_bytes_per_second = 50e9}).model), 10e9, 1e7);
  const DeviceSheet& sheet = find_device("k40c");
  EXPECT_NEAR(link_of(*choose_cost(sheet, 0).model), 8e9, 1e7);
  EXPECT_NEAR(link_of(*choose_cost(sheet, 2e9).model), 2e9, 1e7);
  EXPECT_NEAR(link_of(*choose_cost(sheet, 50e9).model), 50e9, 1e8);
  EXPECT_EQ(choose_cost(sheet, 0).source, "modelled (k40c)");
}

TEST(CostChoice, OfAGraphicsCardIsMeasuredUnlessModelsAreAskedFor) {
  const TemporaryFile cache("cost_choice_cache");
  ASSERT_EQ(setenv("XDG_CACHE_HOME", cache.path().c_str(), 1), 0);
  const auto known = backend_called("cuda", "cuda NVIDIA H200 driver=1");
  const auto unknown = backend_called("cuda", "cuda NVIDIA Unheard driver=1");
  for (const auto& backend : {known.get(), unknown.get()}) {
    EXPECT_NE(choose_cost(*backend, {}).measured, nullptr);
    EXPECT_EQ(choose_cost(*backend, {}).source, "measured (" + backend->description() + ")");
  }
  EXPECT_EQ(choose_cost(*known, {.profile = "none"}).source, "modelled (h200)");
  EXPECT_EQ(choose_cost(*known, {.profile = "none"}).warning, "");
  EXPECT_NE(choose_cost(*unknown, {.profile = "none"}).warning.find("no data sheet"), std::string::npos);
  EXPECT_NE(choose_cost(*make_backend("reference"), {.profile = "auto"}).measured, nullptr);
}

TEST(CostChoice, AProfileOfAnotherBackendIsSaid) {
  const TemporaryFile file("cost_choice_profile");
  Profile profile;
  profile.machine = machine_name();
  profile.backend = "somebody else's";
  profile.in = profile.out = {3e9, 0};
  profile.task_seconds["nothing"] = 1;
  save_profile(profile, file.path());
  const auto backend = make_backend("reference");
  const CostChoice other = choose_cost(*backend, {.profile = file.path().string()});
  EXPECT_NE(other.warning.find("somebody else's"), std::string::npos) << other.warning;
  EXPECT_NE(other.warning.find(backend->description()), std::string::npos) << other.warning;
  EXPECT_EQ(other.warning.find('\n'), std::string::npos);
  EXPECT_EQ(other.source.find("measured"), std::string::npos) << other.source;

  profile.backend = backend->description();
  save_profile(profile, file.path());
  const CostChoice own = choose_cost(*backend, {.profile = file.path().string()});
  EXPECT_EQ(own.warning, "");
  EXPECT_EQ(own.source, "measured (" + file.path().string() + ")");
  EXPECT_NEAR(link_of(*own.model), 3e9, 1e7);
}

// On a device that works by itself the room that a session reserves is left out here as well.
TEST(Target, PlansOneStepAsASessionDoes) {
  const NetworkPtr network = small_network();
  const auto new_target = [] {
    return std::make_unique<Target>(backend_called("reference", "reference"), CostRequest{});
  };
  SessionOptions options = plain_session();
  options.policy = "superneurons";
  options.planner.parameters = Parameters::automatic;
  const auto plan_here = [&] {
    const std::unique_ptr<Target> target = new_target();
    const auto build = [&](const StepChoice& choice) { return target->build(network, {.batch = 64}, choice); };
    return plan_on(*target, find_policy(options.policy), build, options.planner);
  };
  const Bytes floor = plan_here().floor[Tier::device];
  int fits = 0, reserved = 0;
  for (const std::int64_t more : {-256, 0, 256, 8192, 100'000, 400'000, 1'000'000}) {
    SCOPED_TRACE(more);
    options.planner.memory[Tier::device] = Bytes(floor.count() + more);
    const PlanResult here = plan_here();
    auto opened = Session::open(network, {{64, true}}, options, new_target());
    ASSERT_EQ(here.plan.has_value(), std::holds_alternative<SessionPtr>(opened));
    if (!here.plan) continue;
    ++fits;
    reserved += here.plan->memory[Tier::device] < options.planner.memory[Tier::device] ? 1 : 0;
    EXPECT_EQ(to_json(*here.plan), to_json(std::get<SessionPtr>(opened)->plan({64, true})));
  }
  EXPECT_GE(fits, 5);
  EXPECT_GE(reserved, 1);
}

}  // namespace
}  // namespace tide::test
