#include "report/reproduce/experiment.h"

#include <gtest/gtest.h>

#include <set>

namespace tide::reproduce {
namespace {

TEST(Report, ExactMeansEveryPrintedDigit) {
  Report report;
  report.counted("same", "MB", 993.018, 993.0176, 3, 1);
  report.counted("other", "MB", 401, 406.125, 0, 1);
  report.counted("coarse", "MB", 886, 886.23, 0, 1);
  report.modelled("speed", "img/s", 100, 100, 0, 2);
  report.only_ours("bar", "%", 5, 0);
  EXPECT_EQ(report.values[0].standing, Standing::exact);
  EXPECT_EQ(report.values[0].note, 0) << "a note explains a difference";
  EXPECT_EQ(report.values[1].standing, Standing::not_matched);
  EXPECT_EQ(report.values[1].note, 1);
  EXPECT_EQ(report.values[2].standing, Standing::exact);
  EXPECT_EQ(report.values[3].standing, Standing::modelled) << "a model that happens to agree is no proof";
  EXPECT_EQ(report.values[4].paper, "");
}

TEST(Experiments, EveryTableAndFigureOnce) {
  std::set<std::string_view> ids;
  for (const Experiment& experiment : superneurons_experiments())
    EXPECT_TRUE(ids.insert(experiment.id).second) << experiment.id;
  for (const char* id : {"table1", "table2", "table3", "table4", "table5", "figure2", "figure8", "figure10", "figure11",
                         "figure12", "figure13", "figure14"})
    EXPECT_TRUE(ids.contains(id)) << id;
  ids.clear();
  for (const Experiment& experiment : modnn_experiments())
    EXPECT_TRUE(ids.insert(experiment.id).second) << experiment.id;
  for (const char* id : {"figure6", "figure7", "figure8"}) EXPECT_TRUE(ids.contains(id)) << id;
}

}  // namespace
}  // namespace tide::reproduce
