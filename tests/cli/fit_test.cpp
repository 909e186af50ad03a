// tide fit: the answer fits, one more does not.
#include <nlohmann/json.hpp>

#include "cli/run_tide.h"

namespace tide::test {
namespace {

using nlohmann::json;

// Whether `tide plan` has a plan.
bool plan_fits(const std::string& arguments) {
  const ProgramRun run = run_tide("plan " + arguments);
  EXPECT_TRUE(run.code == 0 || run.code == 2) << run.err;
  return run.code == 0;
}

TEST(FitCommand, TheAnswerFitsAndOneMoreDoesNot) {
  for (const char* policy : {"baseline", "sharing", "liveness", "offload", "superneurons"}) {
    for (const char* model : {"lenet", "alexnet", "resnet18"}) {
      SCOPED_TRACE(std::string(policy) + " " + model);
      const std::string common = std::string(model) + " --memory 2GiB --backend null --policy " + policy;
      const ProgramRun run = run_tide("fit " + common + " --json");
      ASSERT_EQ(run.code, 0) << run.err;
      const json result = json::parse(run.out);
      const auto batch = result["batch"].get<std::int64_t>();
      EXPECT_GT(batch, 1);
      EXPECT_LE(result["peak_bytes"].get<std::int64_t>(), 2LL << 30);
      EXPECT_GT(result["next_floor_bytes"].get<std::int64_t>(), 2LL << 30);
      EXPECT_TRUE(plan_fits(common + " --batch " + std::to_string(batch)));
      EXPECT_FALSE(plan_fits(common + " --batch " + std::to_string(batch + 1)));
      EXPECT_LT(result["sizes_asked"].get<int>(), 120);
      EXPECT_FALSE(result["is_largest"].get<bool>()) << "a backend's needs may shrink";
    }
  }
}

TEST(FitCommand, JsonHasThePlansFields) {
  const json result = json::parse(run_tide("fit alexnet --device k40c --json").out);
  for (const char* key :
       {"batch", "model", "policy", "rules", "peak_bytes", "memory_bytes", "floor_bytes", "recomputed_tasks",
        "offloaded_bytes", "prefetched_bytes", "predicted_seconds", "images_per_second", "next_bottleneck_task"})
    EXPECT_TRUE(result.contains(key)) << key;
  EXPECT_EQ(result["policy"], "auto");
  EXPECT_TRUE(result["is_largest"].get<bool>());
  EXPECT_EQ(result["memory_bytes"], 12LL << 30);
  EXPECT_NEAR(result["images_per_second"].get<double>() * result["predicted_seconds"].get<double>(),
              result["batch"].get<double>(), 1e-3);
}

// Floors of segments go up and down with the batch: 123 does not fit, 126 does.
TEST(FitCommand, LooksBehindASizeThatDoesNotFit) {
  const std::string common = "resnet18 --policy sublinear --device titan-x --memory 1GiB";
  const json result = json::parse(run_tide("fit " + common + " --json").out);
  EXPECT_GE(result["batch"].get<int>(), 126);
  EXPECT_FALSE(result["is_largest"].get<bool>());
  const std::string text = run_tide("fit " + common).out;
  EXPECT_EQ(text.find("largest"), std::string::npos) << text;
  EXPECT_NE(text.find("still larger"), std::string::npos) << text;
}

TEST(FitCommand, SubBatchesHaveNoLargestBatch) {
  expect_refusal("fit lenet --memory 9MiB --device h200 --allow reordered", 1, {"sub-batches", "--allow"});
}

TEST(FitCommand, SaysWhereParametersStay) {
  const ProgramRun run = run_tide("fit 'resnet:1,1,?,1' --batch 2 --memory 300MiB --device titan-x --policy liveness");
  EXPECT_NE(run.out.find("parameters       on the device"), std::string::npos) << run.out;
  expect_refusal("fit 'resnet:1,1,?,1' --batch 2 --memory 30MiB --device titan-x", 2, {"n = 1", "--host-memory"});
}

TEST(FitCommand, HostMemoryThatIsLimitedCounts) {
  const std::string common = "resnet18 --device titan-x --memory 300MiB";
  const auto batch = [&](const std::string& more) {
    return json::parse(run_tide("fit " + common + more + " --json").out)["batch"].get<std::int64_t>();
  };
  const std::int64_t limited = batch(" --host-memory 200MB");
  EXPECT_LT(limited, batch(""));
  EXPECT_TRUE(plan_fits(common + " --host-memory 200MB --batch " + std::to_string(limited)));
  EXPECT_FALSE(plan_fits(common + " --host-memory 200MB --batch " + std::to_string(limited + 1)));
}

TEST(FitCommand, MoreTechniquesHoldMore) {
  const auto batch = [](const std::string& policy) {
    return json::parse(
               run_tide("fit resnet50 --device k40c --rules superneurons --json --policy " + policy).out)["batch"]
        .get<std::int64_t>();
  };
  const std::int64_t baseline = batch("baseline"), liveness = batch("liveness"), offload = batch("offload"),
                     all = batch("superneurons");
  EXPECT_LT(baseline, liveness);
  EXPECT_LT(liveness, offload);
  EXPECT_LT(offload, all);
}

TEST(FitCommand, TheReserveCounts) {
  const json whole = json::parse(run_tide("fit alexnet --memory 3GiB --backend null --policy liveness --json").out);
  const json less =
      json::parse(run_tide("fit alexnet --memory 3GiB --reserve 1GiB --backend null --policy liveness --json").out);
  EXPECT_EQ(less["memory_bytes"], 2LL << 30);
  EXPECT_LT(less["batch"].get<std::int64_t>(), whole["batch"].get<std::int64_t>());
}

TEST(FitCommand, TheDepthOfAResNet) {
  const std::string common = "--memory 2GiB --backend null --policy liveness --batch 4";
  const json result = json::parse(run_tide("fit 'resnet:2,2,?,2' --json " + common).out);
  const auto n = result["n"].get<std::int64_t>();
  EXPECT_EQ(result["depth"], 3 * (6 + n) + 2);
  EXPECT_EQ(result["model"], "resnet:2,2," + std::to_string(n) + ",2");
  EXPECT_EQ(result["batch"], 4);
  EXPECT_TRUE(plan_fits("resnet:2,2," + std::to_string(n) + ",2 " + common));
  EXPECT_FALSE(plan_fits("resnet:2,2," + std::to_string(n + 1) + ",2 " + common));
  const ProgramRun text = run_tide("fit 'resnet:2,2,?,2' " + common);
  EXPECT_NE(text.out.find("depth " + std::to_string(3 * (6 + n) + 2)), std::string::npos) << text.out;
  EXPECT_LE(widest_line(text.out), 120U);
}

TEST(FitCommand, HostMemoryForParametersGoesDeeper) {
  const std::string common =
      "fit 'resnet:2,2,?,2' --memory 128MiB --backend null --policy superneurons --batch 1 --json ";
  const auto depth = [&](const std::string& more) {
    return json::parse(run_tide(common + more).out)["depth"].get<std::int64_t>();
  };
  const std::int64_t on_device = depth("--host-memory 512MiB --parameters device");
  EXPECT_GT(depth("--host-memory 512MiB"), 2 * on_device);
  EXPECT_EQ(depth(""), on_device);  // nothing else would bound it
}

TEST(FitCommand, NothingFitsIsAnAnswer) {
  expect_refusal("fit resnet50 --memory 1MiB --backend null", 2, {"bytes", "batch 1"});
  expect_refusal("fit 'resnet:2,2,?,2' --memory 1MiB --backend null", 2, {"bytes", "n = 1"});
}

TEST(FitCommand, BadArgumentsAreRefused) {
  expect_refusal("fit resnet50 --memory 1GiB --batch 8 --backend null", 1, {"--batch"});
  expect_refusal("fit resnet50 --backend null", 1, {"--memory", "--device"});
  expect_refusal("fit resnet50 --device k40c --reserve 13GiB", 1, {"--reserve"});
  expect_refusal("fit 'resnet:?,2,?,2' --memory 1GiB --backend null", 1, {"resnet:6,32,?,6"});
  expect_refusal("fit 'vgg?' --memory 1GiB --backend null", 1, {"resnet:6,32,?,6"});
  expect_refusal("fit alexnt --memory 1GiB --backend null", 1, {"alexnet"});
}

}  // namespace
}  // namespace tide::test
