// Figures to the byte, worked out by hand from the SuperNeurons paper (AlexNet: Figure 10;
// ResNet: the networks of its Table 1).
#include <gtest/gtest.h>

#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policies/superneurons.h"
#include "planner/policy.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct GoldenRow {
  const char* model;
  std::int64_t batch;
  std::int32_t layers;
  std::int32_t data_tensors;
  std::int64_t baseline_bytes;
  std::int64_t liveness_bytes;
  std::int32_t peak_step;
  std::int32_t live_at_peak;
};

class Golden : public testing::TestWithParam<GoldenRow> {
 protected:
  PlanSummary summary(std::string_view policy) {
    Step step =
        build_step(std::make_shared<Network>(make_model(GetParam().model)),
                   {.batch = GetParam().batch, .rules = Rules::superneurons, .training = true, .optimizer = {}});
    EXPECT_EQ(step.layer_steps, GetParam().layers);
    return summarize(*make_plan(find_policy(policy), std::move(step), RooflineModel(generic_cpu()), {}).plan);
  }
};

TEST_P(Golden, Baseline) {
  const PlanSummary result = summary("baseline");
  EXPECT_EQ(result.data_tensors, GetParam().data_tensors);
  EXPECT_EQ(result.data_bytes.count(), GetParam().baseline_bytes);
  EXPECT_EQ(result.peak_data_bytes.count(), GetParam().baseline_bytes);
}

TEST_P(Golden, Liveness) {
  const PlanSummary result = summary("liveness");
  EXPECT_EQ(result.peak_data_bytes.count(), GetParam().liveness_bytes);
  EXPECT_EQ(result.peak_step, GetParam().peak_step);
  EXPECT_EQ(result.live_data_tensors_at_peak, GetParam().live_at_peak);
  EXPECT_EQ(result.data_tensors, GetParam().data_tensors);
}

INSTANTIATE_TEST_SUITE_P(
    Paper, Golden,
    testing::Values(GoldenRow{"alexnet", 200, 23, 36, 2295791200, 1561702400, 32, 17},
                    GoldenRow{"superneurons/resnet50", 32, 191, 332, 9538000256, 4655120384, 194, 175},
                    GoldenRow{"superneurons/resnet101", 32, 378, 655, 14560417152, 7057145856, 381, 345}),
    [](const auto& row) {
      std::string name = row.param.model;
      for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      return name;
    });

// The rows of Figure 10 and Table 1: each technique on top of the ones before it.
struct TechniqueRow {
  const char* model;
  std::int64_t batch;
  const char* policy;
  Recompute recompute;
  std::int32_t recomputed;
  double peak_mib;
  const char* peak_task;
  std::int32_t live_at_peak;
};

class GoldenTechniques : public testing::TestWithParam<TechniqueRow> {};

TEST_P(GoldenTechniques, Match) {
  Step step = build_step(std::make_shared<Network>(make_model(GetParam().model)),
                         {.batch = GetParam().batch, .rules = Rules::superneurons, .training = true, .optimizer = {}});
  PlannerOptions options;
  options.policy.set<SuperneuronsOptions>().recompute = GetParam().recompute;
  options.policy.set<SuperneuronsOptions>().cache = false;
  const PlanSummary result = summarize(
      *make_plan(find_policy(GetParam().policy), std::move(step), RooflineModel(generic_cpu()), options).plan);
  EXPECT_EQ(result.recomputed_tasks, GetParam().recomputed);
  EXPECT_NEAR(static_cast<double>(result.peak_data_bytes.count()) / (1 << 20), GetParam().peak_mib, 5e-5);
  EXPECT_EQ(result.peak_task, GetParam().peak_task);
  EXPECT_EQ(result.live_data_tensors_at_peak, GetParam().live_at_peak);
}

INSTANTIATE_TEST_SUITE_P(
    Paper, GoldenTechniques,
    testing::Values(
        TechniqueRow{"alexnet", 200, "offload", Recompute::none, 0, 1132.0557, "pool2 backward", 9},
        TechniqueRow{"alexnet", 200, "superneurons", Recompute::speed, 14, 993.0176, "pool1 backward", 6},
        TechniqueRow{"alexnet", 200, "superneurons", Recompute::memory, 23, 886.2305, "lrn1 backward", 4},
        TechniqueRow{"alexnet", 200, "superneurons", Recompute::cost_aware, 17, 886.2305, "lrn1 backward", 4},
        TechniqueRow{"superneurons/resnet50", 32, "superneurons", Recompute::speed, 84, 455.125, "pool1 backward", 6},
        TechniqueRow{"superneurons/resnet50", 32, "superneurons", Recompute::memory, 118, 406.125,
                     "conv1.relu backward", 4},
        TechniqueRow{"superneurons/resnet50", 32, "superneurons", Recompute::cost_aware, 85, 406.125,
                     "conv1.relu backward", 4},
        TechniqueRow{"superneurons/resnet101", 32, "superneurons", Recompute::speed, 169, 455.125, "pool1 backward", 6},
        TechniqueRow{"superneurons/resnet101", 32, "superneurons", Recompute::memory, 237, 406.125,
                     "conv1.relu backward", 4},
        TechniqueRow{"superneurons/resnet101", 32, "superneurons", Recompute::cost_aware, 170, 406.125,
                     "conv1.relu backward", 4}),
    [](const auto& row) {
      std::string name =
          fmt::format("{}_{}_{}", row.param.model, row.param.policy, recompute_name(row.param.recompute));
      for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      return name;
    });

TEST(GoldenAlexNet, MostTensorsAreAliveAtTheTurn) {
  Step step = build_step(std::make_shared<Network>(make_model("alexnet")),
                         {.batch = 200, .rules = Rules::superneurons, .training = true, .optimizer = {}});
  const PlanSummary result =
      summarize(*make_plan(find_policy("liveness"), std::move(step), RooflineModel(generic_cpu()), {}).plan);
  EXPECT_EQ(result.max_live_data_tensors, 23);
  ASSERT_EQ(result.steps.size(), 46U);
  for (const std::size_t at : {23U, 24U, 25U}) EXPECT_EQ(result.steps[at - 1].live_data_tensors, 23) << "step " << at;
  EXPECT_EQ(result.peak_task, "pool5 backward");
}

}  // namespace
}  // namespace tide
