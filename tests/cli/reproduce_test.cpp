// tide reproduce: what counting gives is exact, what the paper slips on is told.
#include <nlohmann/json.hpp>

#include "cli/run_tide.h"

namespace tide::test {
namespace {

using nlohmann::json;

json experiment(const std::string& id) {
  const ProgramRun run = run_tide("reproduce superneurons --json --only " + id);
  EXPECT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result["experiments"].size(), 1U);
  return result["experiments"][0];
}

TEST(ReproduceCommand, Table1IsExactButForOnePeak) {
  int exact = 0;
  const json table = experiment("table1");
  for (const json& value : table["values"]) {
    const std::string what = value["what"];
    if (value["paper"] == 401) {
      EXPECT_EQ(value["standing"], "not matched") << what;
      EXPECT_DOUBLE_EQ(value["ours"].get<double>(), 406.125) << what;
      EXPECT_TRUE(value.contains("note")) << what;
    } else {
      EXPECT_EQ(value["standing"], "exact") << what << ": " << value["ours"];
      ++exact;
    }
  }
  EXPECT_EQ(exact, 14);
}

TEST(ReproduceCommand, Figure10HasItsCurves) {
  const json figure = experiment("figure10");
  for (const json& value : figure["values"])
    if (value["standing"] == "not matched") {
      EXPECT_TRUE(value["paper"] == 1132.155 || value["paper"] == 886.385) << value;
    }
  const json& series = figure["series"]["figure10_steps"];
  EXPECT_EQ(series["rows"].size(), 46U);
  EXPECT_EQ(series["rows"][31][0], "32");
  EXPECT_EQ(series["rows"][31][3], "1489.3555");
}

TEST(ReproduceCommand, EveryMismatchHasANote) {
  const ProgramRun run = run_tide("reproduce superneurons --json --only figure2,figure8,table2,table3,figure13");
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result["experiments"].size(), 5U);
  for (const json& one : result["experiments"]) {
    EXPECT_FALSE(one["values"].empty());
    for (const json& value : one["values"])
      if (value["standing"] == "not matched") {
        EXPECT_TRUE(value.contains("note")) << one["id"] << " " << value;
      }
  }
}

TEST(ReproduceCommand, SublinearPlansStaySmall) {
  const ProgramRun run = run_tide("reproduce sublinear --json --only figure5,figure6");
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  ASSERT_EQ(result["experiments"].size(), 2U);
  const auto value = [&](std::size_t experiment, std::string_view what) {
    for (const json& entry : result["experiments"][experiment]["values"])
      if (entry["what"] == what) return entry["ours"].get<double>();
    ADD_FAILURE() << what;
    return 0.0;
  };
  EXPECT_LT(value(0, "1001 layers, sublinear plan"), 7);
  EXPECT_LE(value(0, "growth with depth, sublinear plan"), 0.55);
  EXPECT_GT(value(1, "sharing over sublinear plan, longest"), 4);
  EXPECT_EQ(result["experiments"][0]["series"]["figure5_memory"]["rows"].size(), 5U);
}

// What the paper prints in its text, as bounds.
TEST(ReproduceCommand, ModnnNeedsLittleMemoryTimeAndTraffic) {
  const ProgramRun run = run_tide("reproduce modnn --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  ASSERT_EQ(result["experiments"].size(), 4U);
  const auto value = [&](std::size_t experiment, std::string_view what) {
    for (const json& entry : result["experiments"][experiment]["values"])
      if (entry["what"] == what) return entry["ours"].get<double>();
    ADD_FAILURE() << what;
    return 0.0;
  };
  EXPECT_GE(value(0, "ideal over lower bound, on average"), 50);
  EXPECT_GE(value(0, "the same over all classes, momentum included"), 50);
  EXPECT_LE(value(1, "moDNN, loss on average"), 8);
  EXPECT_GE(value(1, "vDNN, loss on average"), 3 * value(1, "moDNN, loss on average"));
  EXPECT_GE(value(1, "vDNN of convolutions only, loss on average"), 3 * value(1, "moDNN, loss on average"));
  EXPECT_GE(value(1, "vDNN's bytes over moDNN's, by the mean share"), 5);
  EXPECT_EQ(value(2, "budgets that moDNN fits into"), 45);
  EXPECT_LT(value(2, "budgets that vDNN+ fits into"), 45);
  EXPECT_LT(value(2, "the most by which it is slower"), 2);
}

TEST(ReproduceCommand, FiguresComeAsFiles) {
  const TemporaryFolder folder;
  const ProgramRun run =
      run_tide("reproduce superneurons --only figure10,figure8 --output " + (folder.path() / "new" / "csv").string());
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_LE(widest_line(run.out), 120U);
  EXPECT_NE(run.out.find("Figure 10"), std::string::npos);
  const std::string steps = file_text(folder.path() / "new" / "csv" / "figure10_steps.csv");
  EXPECT_TRUE(steps.starts_with("step,baseline_mib")) << steps.substr(0, 80);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), '\n'), 47);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "new" / "csv" / "figure8a_time.csv"));
}

TEST(ReproduceCommand, UnknownThingsAreRefused) {
  expect_refusal("reproduce vdnn", 1, {"vdnn", "superneurons"});
  expect_refusal("reproduce superneurons --only table9", 1, {"table9", "table1"});
  expect_refusal("reproduce superneurons --only figure8 --output /proc/nowhere", 1, {"/proc/nowhere"});
}

}  // namespace
}  // namespace tide::test
