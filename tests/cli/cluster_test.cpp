// tide plan and tide compare for several devices that are not there.
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/run_tide.h"

namespace tide::test {
namespace {

using nlohmann::json;

json planned(const std::string& arguments) {
  const ProgramRun run = run_tide("plan --json " + arguments);
  EXPECT_EQ(run.code, 0) << run.err;
  return run.code == 0 ? json::parse(run.out) : json();
}

TEST(ClusterCommand, ResNet50ScalesAsLinksAllow) {
  const std::string resnet = "resnet50 --memory device --policy liveness --batch ";
  EXPECT_GE(planned(resnet + "256 --device h100 --topology 8xh100-nvlink")["efficiency"], 0.97);
  EXPECT_GE(planned(resnet + "256 --device rtx3090 --topology 8xrtx3090-pcie")["efficiency"], 0.90);
  // A network of 10 Gb/s is slower than a small batch.
  const std::string ethernet = " --device rtx3090 --topology " TIDE_TEST_DATA "/../docs/topology-example.json";
  const json small = planned(resnet + "64" + ethernet), large = planned(resnet + "256" + ethernet);
  EXPECT_EQ(small["devices"], 8);
  EXPECT_LT(small["efficiency"], 0.7);
  EXPECT_GT(large["efficiency"], small["efficiency"].get<double>() + 0.2);
}

TEST(ClusterCommand, EveryDeviceHasAPlan) {
  const std::string alexnet =
      "alexnet --device p100 --memory device --batch 64 --devices 4 --policy vdnn-conv --reduce cpu";
  const json none = planned(alexnet), best = planned(alexnet + " --stagger auto");
  ASSERT_EQ(none["ranks"].size(), 4U);
  EXPECT_EQ(none["way"], "none");
  for (const json& rank : none["ranks"]) {
    EXPECT_GT(rank["offloaded_bytes"], 0);
    EXPECT_GT(rank["seconds"], rank["seconds_without_others"]);
  }
  EXPECT_LE(best["predicted_seconds"], none["predicted_seconds"]);
  const ProgramRun text = run_tide("plan " + alexnet + " --stagger paper --explain");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* word : {"efficiency", "predicted step", "tried", "paper, 0 of"})
    EXPECT_NE(text.out.find(word), std::string::npos) << word;
}

TEST(ClusterCommand, CompareShowsAllPolicies) {
  const ProgramRun run = run_tide("compare lenet --device k40c --batch 16 --devices 2 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result["devices"], 2);
  EXPECT_GT(result["policies"].size(), 14U);
  for (const json& row : result["policies"]) {
    EXPECT_TRUE(row["feasible"]) << row;
    EXPECT_GT(row["efficiency"], 0) << row;
  }
  EXPECT_NE(run_tide("compare lenet --device k40c --devices 2").out.find("efficiency"), std::string::npos);
}

TEST(ClusterCommand, TooLittleMemoryIsAnAnswer) {
  const ProgramRun run = run_tide("plan lenet --device k40c --memory 64KiB --devices 2 --policy liveness");
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("does not fit"), std::string::npos) << run.err;
}

TEST(ClusterCommand, ThePaperNamesTheLargestBatchWithLateTriggers) {
  const std::string alexnet = "plan alexnet --device p100 --memory 1GiB --devices 2 --policy vdnn-conv --stagger paper";
  const ProgramRun run = run_tide(alexnet + " --batch 1000");
  EXPECT_EQ(run.code, 2);
  const std::regex line(
      R"(tide: a batch of 1000 runs out of memory: .* (\d+) fits, the largest in steps of 10; use that\n)");
  std::smatch match;
  ASSERT_TRUE(std::regex_match(run.err, match, line)) << run.err;
  const std::string largest = match[1];
  EXPECT_EQ(run_tide(alexnet + " --batch " + largest).code, 0);
  EXPECT_EQ(run_tide(alexnet + " --batch " + std::to_string(std::stoi(largest) + 10)).code, 2);
}

TEST(ClusterCommand, BadValuesEndInOneLine) {
  const std::string device = " --device k40c";
  const std::vector<std::pair<std::string, std::string>> bad{
      {device + " --devices -1", "--devices -1"},
      {device + " --devices 0", "--devices 0"},
      {device + " --devices 5000", "5000"},
      {device + " --devices 9 --topology 8xh100-nvlink", "has 8 devices, not 9"},
      {device + " --topology nowhere", "nowhere"},
      {device + " --topology " TIDE_TEST_DATA "/CMakeLists.txt", "not JSON"},
      {device + " --devices 2 --stagger maybe", "maybe"},
      {device + " --devices 2 --reduce gpu", "gpu"},
      {device + " --stagger auto", "--stagger auto"},
      {device + " --reduce cpu", "--reduce cpu"},
      {device + " --devices 2 --stagger paper --policy liveness", "liveness"},
      {device + " --devices 2 --inference", "--inference"},
      {device + " --devices 2 --save x.json", "--save"},
      {" --backend null --devices 2", "--device"},
  };
  for (const auto& [arguments, word] : bad) {
    const ProgramRun run = run_tide("plan lenet" + arguments);
    EXPECT_EQ(run.code, 1) << arguments;
    EXPECT_NE(run.err.find(word), std::string::npos) << arguments << ": " << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

TEST(ReproduceCommand, SwappingInTurnIsWorthIt) {
  const ProgramRun run = run_tide("reproduce multi-gpu --json --only table2");
  ASSERT_EQ(run.code, 0) << run.err;
  const json table = json::parse(run.out)["experiments"][0];
  const auto value = [&](const std::string& what) {
    for (const json& each : table["values"])
      if (each["what"] == what) return each["ours"].get<double>();
    ADD_FAILURE() << what;
    return 0.0;
  };
  const std::string shared = "2 at 1 switch: ", apart = "2 at 2 switches: ";
  EXPECT_LT(value(shared + "original of Non-Swap"), 80);
  EXPECT_LT(value(shared + "original of Non-Swap"), value(apart + "original of Non-Swap"));
  EXPECT_GE(value(shared + "optimized of Non-Swap"), 95);
  EXPECT_GE(value(apart + "optimized of Non-Swap"), 95);
  EXPECT_GE(value(shared + "gain of optimized over original, least"), 44);
  EXPECT_EQ(value("largest batch, Non-Swap"), 120);
  EXPECT_GE(value("gain in batch"), 25);
  EXPECT_EQ(table["series"]["table2"]["rows"].size(), 8U);
}

TEST(ReproduceCommand, FiguresOfSeveralDevices) {
  const ProgramRun run = run_tide("reproduce multi-gpu --json --only figure3");
  ASSERT_EQ(run.code, 0) << run.err;
  const json figure = json::parse(run.out)["experiments"][0];
  EXPECT_GT(figure["values"][0]["ours"], figure["values"][1]["ours"]);
  EXPECT_GT(figure["values"][1]["ours"], figure["values"][2]["ours"]);
  EXPECT_EQ(figure["series"]["figure3_drawn"]["rows"].size(), 24U);
  const ProgramRun modnn = run_tide("reproduce modnn --json --only figure9");
  ASSERT_EQ(modnn.code, 0) << modnn.err;
  for (const json& each : json::parse(modnn.out)["experiments"][0]["values"])
    EXPECT_GE(each["ours"], each["paper"].get<double>()) << each;
}

}  // namespace
}  // namespace tide::test
