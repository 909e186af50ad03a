// Every task has a time on every device: one without would keep all plans that have it from being compared.
#include "cost/device_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/devices.h"
#include "step/build.h"
#include "support/random_network.h"

namespace tide {
namespace {

void expect_times(const CostModel& cost, const Step& step, std::uint32_t seed) {
  for (std::size_t t = 0; t < step.tasks.size(); ++t)
    for (std::size_t a = 0; a < step.algorithms_of(TaskId(t)).size(); ++a) {
      const double seconds = cost.task_seconds(step, TaskId(t), a);
      EXPECT_TRUE(std::isfinite(seconds) && seconds > 0)
          << task_name(step, TaskId(t)) << " of seed " << seed << " takes " << seconds << " s on " << cost.name();
    }
}

TEST(DeviceModel, KnowsTheTimeOfEveryTask) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    StepOptions options{.batch = 4, .optimizer = {.kind = OptimizerKind::adam}, .fuse = seed % 2 == 0};
    options.ranks.count = 1 + seed % 2;
    options.ranks.parts = seed % 3 == 0 ? 0 : 4 * options.ranks.count;  // statistics are put together, too
    options.ranks.shard = static_cast<Shard>(seed % kShards);
    options.ranks.bucket = Bytes(500);
    options.ranks.least_to_shard = Bytes(100);
    for (const DeviceSheet& sheet : device_sheets()) {
      Step step = build_step(testing_support::random_network(seed), options);
      expect_times(DeviceModel(sheet.rates()), step, seed);
      annotate_for(step, sheet.rates());
      expect_times(DeviceModel(sheet.rates()), step, seed);
      expect_times(RooflineModel(sheet.rates()), step, seed);
    }
  }
}

}  // namespace
}  // namespace tide
