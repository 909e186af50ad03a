// The same words give the same plan, whoever plans: a session plans op by op, address by address
// what tide plan saves, and tide train expects the time that tide plan predicts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/run_tide.h"
#include "cost/profile.h"
#include "plan/plan_json.h"
#include "train/session.h"
#include "zoo/zoo.h"

namespace tide::test {
namespace {

using nlohmann::json;

constexpr std::int64_t kBatch = 16;

// One thread: how many there are is part of what a profile is for.
std::string backend_name() {
  try {
    static_cast<void>(make_backend("cpu"));
    return "cpu";
  } catch (const Error&) {
    return "reference";
  }
}

struct Words {
  std::string text;  // "FILE" is a profile
  std::function<void(SessionOptions&)> apply;
};

std::vector<Words> cases(std::int64_t memory) {
  const auto within = [](std::int64_t bytes) {
    return [bytes](SessionOptions& options) { options.planner.memory[Tier::device] = Bytes(bytes); };
  };
  const std::string half = fmt::format("--memory {} ", memory / 2), most = fmt::format("--memory {} ", memory * 9 / 10);
  return {
      {"", [](SessionOptions&) {}},
      {half, within(memory / 2)},
      {most + "--profile none", within(memory * 9 / 10)},
      {half + "--link 100MB/s",
       [=](SessionOptions& options) {
         within(memory / 2)(options);
         options.executor.link_bytes_per_second = 100e6;
       }},
      {half + "--link 40GB/s",
       [=](SessionOptions& options) {
         within(memory / 2)(options);
         options.executor.link_bytes_per_second = 40e9;
       }},
      {half + "--profile FILE",
       [=](SessionOptions& options) {
         within(memory / 2)(options);
         options.profile = "FILE";
       }},
      {half + "--profile FILE --link 100MB/s",
       [=](SessionOptions& options) {
         within(memory / 2)(options);
         options.profile = "FILE";
         options.executor.link_bytes_per_second = 100e6;
       }},
      {half + "--policy superneurons --host-memory 64MiB",
       [=](SessionOptions& options) {
         within(memory / 2)(options);
         options.policy = "superneurons";
         options.planner.memory[Tier::host] = Bytes(64LL << 20);
       }},
      {most + "--sub-batch 5 --allow reordered --batch-norm exact",
       [=](SessionOptions& options) {
         within(memory * 9 / 10)(options);
         options.planner.batch = SubBatches{.exact_batch_norm = true, .samples = 5};
       }},
  };
}

TEST(SamePlan, OfASessionAndOfTidePlan) {
  const TemporaryFolder folder;
  const std::string profile = (folder.path() / "profile.json").string(), saved = (folder.path() / "plan.json").string();
  const std::string model = fmt::format("digits --batch {} --backend {} --threads 1 ", kBatch, backend_name());
  ASSERT_EQ(run_tide("profile " + model + "--runs 1 --save " + profile).code, 0);
  const json whole = json::parse(run_tide("plan " + model + "--policy liveness --json").out);
  for (Words words : cases(whole["peak_bytes"].get<std::int64_t>())) {
    SCOPED_TRACE(words.text);
    SessionOptions options;
    options.backend = backend_name();
    options.threads = 1;
    words.apply(options);
    if (options.profile == "FILE") options.profile = profile;
    if (const auto at = words.text.find("FILE"); at != std::string::npos) words.text.replace(at, 4, profile);

    const ProgramRun planned = run_tide("plan " + model + words.text + " --json --save " + saved);
    ASSERT_EQ(planned.code, 0) << planned.err;
    EXPECT_EQ(planned.err, "");
    const auto network = std::make_shared<const Network>(make_model("digits"));
    auto opened = Session::open(network, {{kBatch, true}}, options);
    ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Session>>(opened));
    const Plan& plan = std::get<std::unique_ptr<Session>>(opened)->plan({kBatch, true});
    EXPECT_EQ(to_json(load_plan(saved)), to_json(plan));

    const ProgramRun trained = run_tide("train " + model + words.text + " --steps 1 --validation 0.02 --json");
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_EQ(json::parse(trained.out)["predicted_step_seconds"], json::parse(planned.out)["predicted_seconds"]);
  }
}

TEST(SamePlan, TheTimesOfAnotherBackendAreSaidByAllCommands) {
  const TemporaryFolder folder;
  const std::string profile = (folder.path() / "profile.json").string();
  ASSERT_EQ(run_tide("profile digits --batch 4 --backend null --runs 1 --save " + profile).code, 0);
  const std::string model = "digits --backend reference --batch 4 --profile " + profile;
  for (const std::string& command :
       {"plan " + model, "compare " + model, "train " + model + " --steps 1 --validation 0.02",
        "eval " + model + " --validation 0.02", "fit digits --backend reference --memory 2MiB --profile " + profile}) {
    SCOPED_TRACE(command);
    const ProgramRun run = run_tide(command);
    EXPECT_EQ(run.code, 0);
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_NE(run.err.find("null"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("tide profile"), std::string::npos) << run.err;
  }
  EXPECT_EQ(run_tide("plan digits --backend null --batch 4 --profile " + profile).err, "");
}

// A device that is not here is planned for by its data sheet; nobody is timed as something else.
TEST(SamePlan, ADeviceThatIsNotHereIsNamed) {
  try {
    static_cast<void>(make_backend("cuda"));
    GTEST_SKIP() << "there is a CUDA device here";
  } catch (const Error&) {
  }
  for (const char* const command : {"plan", "compare", "fit"})
    expect_refusal(std::string(command) + " lenet --backend cuda --memory 1GiB", 1, {"--device", "tide devices"});
  expect_refusal("plan lenet --backend cuda --memory total:1GiB", 1, {"--device"});
  expect_refusal("plan lenet --memory total:1GiB --backend null", 1, {"total:1GiB", "--backend cuda"});
  expect_refusal("train digits --memory device --backend null", 1, {"--device"});
}

}  // namespace
}  // namespace tide::test
