// vDNN: what leaves, when, and that the next layer waits for it. Every plan here has passed the checker.
#include "planner/vdnn/vdnn.h"

#include <gtest/gtest.h>

#include <set>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

class Vdnn : public testing::Test {
 protected:
  Step step(std::string_view model, std::int64_t batch) const {
    Step step = build_step(std::make_shared<Network>(make_model(model)), {.batch = batch});
    annotate_for(step, device_);
    return step;
  }
  Plan plan(std::string_view policy, const Step& step, Algorithms algorithms = Algorithms::fastest) const {
    PlannerOptions options;
    options.policy.set<VdnnOptions>().algorithms = algorithms;
    return *make_plan(find_policy(policy), step, cost_, options).plan;
  }
  Device device_ = find_device("titan-x").rates();
  DeviceModel cost_{device_};
};

TEST_F(Vdnn, MovesInputsOfConvolutionsOrOfAllLayers) {
  const Step original = step("vgg16", 32);
  for (const char* policy : {"vdnn-conv", "vdnn-all"}) {
    const Plan made = plan(policy, original);
    const Phase& phase = made.phases.front();
    std::set<StorageId> convolved;  // inputs of convolutions
    for (std::size_t t = 0; t < phase.step->ordered_tasks; ++t)
      if (phase.step->tasks[t].kind == TaskKind::forward &&
          phase.step->layer_kind(phase.step->tasks[t]) == LayerKind::convolution)
        convolved.insert(phase.step->tensor(phase.step->operands_of(TaskId(t))[0].tensor).storage);
    std::set<StorageId> moved;
    for (const Op& op : phase.ops)
      if (op.is_copy() && op.lane == Lane::out) moved.insert(op.copy().storage);
    const bool only = std::includes(convolved.begin(), convolved.end(), moved.begin(), moved.end());
    EXPECT_EQ(only, std::string_view(policy) == "vdnn-conv");
    EXPECT_TRUE(std::includes(moved.begin(), moved.end(), convolved.begin(), convolved.end())) << policy;
  }
}

// By the simulator: while something is copied, at most one layer is at work, and none begins.
TEST_F(Vdnn, KeepsCopiesInStepWithOneLayer) {
  for (const char* model : {"vgg16", "resnet50", "inception-v3"}) {
    for (const char* policy : {"vdnn-conv", "vdnn-all"}) {
      const Plan made = plan(policy, step(model, 16));
      const Phase& phase = made.phases.front();
      const Timeline timeline = simulate(made, cost_);
      int copies = 0;
      for (std::size_t c = 0; c < phase.ops.size(); ++c) {
        if (!phase.ops[c].is_copy()) continue;
        ++copies;
        std::set<std::pair<LayerId, bool>> layers;
        for (std::size_t r = 0; r < phase.ops.size(); ++r) {
          if (!phase.ops[r].is_run()) continue;
          const bool beside =
              timeline.spans[r].start < timeline.spans[c].end && timeline.spans[r].end > timeline.spans[c].start;
          const Task& task = phase.step->task(phase.ops[r].run().task);
          const bool layer = task.kind != TaskKind::update && task.kind != TaskKind::sum_gradients;
          if (beside && layer && timeline.spans[r].end > timeline.spans[r].start)
            layers.insert({task.layer, task.kind == TaskKind::forward});
        }
        EXPECT_LE(layers.size(), 1U) << model << " " << policy << " op " << c;
      }
      EXPECT_GT(copies, 10) << model;
    }
  }
}

TEST_F(Vdnn, TakesTheFastestAlgorithmsOrTheSmallest) {
  const Step original = step("vgg16", 32);
  const Plan fast = plan("vdnn-all", original), small = plan("vdnn-all", original, Algorithms::smallest);
  EXPECT_LT(simulate(fast, cost_).seconds, simulate(small, cost_).seconds);
  EXPECT_GT(summarize(fast).peak[Tier::device], summarize(small).peak[Tier::device]);
  const Phase& phase = small.phases.front();
  EXPECT_TRUE(std::all_of(phase.ops.begin(), phase.ops.end(), [&](const Op& op) {
    return op.is_copy() || phase.step->algorithms_of(op.run().task)[op.run().algorithm].workspace.is_zero();
  }));
}

TEST_F(Vdnn, TakesLessMemoryThanLivenessAndMoreTimeThanOffload) {
  const Step original = step("resnet50", 32);
  const Plan liveness = plan("liveness", original), offload = plan("offload", original);
  const Plan some = plan("vdnn-conv", original), all = plan("vdnn-all", original);
  EXPECT_LT(summarize(some).peak[Tier::device], summarize(liveness).peak[Tier::device]);
  EXPECT_LT(summarize(all).peak[Tier::device], summarize(some).peak[Tier::device]);
  EXPECT_GT(simulate(some, cost_).seconds, simulate(offload, cost_).seconds);
  EXPECT_GT(simulate(all, cost_).seconds, simulate(some, cost_).seconds);
}

}  // namespace
}  // namespace tide
