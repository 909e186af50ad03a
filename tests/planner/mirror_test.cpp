// Recomputation by mirror counts, and the policies made of it. Every plan here has passed the checker.
#include "planner/replay/mirror.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/draft/in_place.h"
#include "planner/planner.h"
#include "planner/policies/recursive.h"
#include "planner/policies/sublinear.h"
#include "planner/policy.h"
#include "planner/replay/split_points.h"
#include "step/build.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

Step step_of(std::string_view model, std::int64_t batch, bool fuse = true, bool training = true) {
  return build_step(std::make_shared<Network>(make_model(model)), {.batch = batch, .training = training, .fuse = fuse});
}

PlanResult plan(std::string_view policy, const Step& step, const PlannerOptions& options = {}) {
  return make_plan(find_policy(policy), step, RooflineModel(generic_cpu()), options);
}

// A chain of sigmoids, whose backward tasks need their own outputs and nothing else.
NetworkPtr chain(int layers, std::vector<int> counts = {}) {
  Builder net("chain");
  Value x = net.input({1, 4, 4, 4}, "data");
  for (int i = 0; i < layers; ++i) {
    x = net.convolution(x, {.channels = 4, .window = Window::square(1)}, fmt::format("c{}", i + 1));
    if (static_cast<std::size_t>(i) < counts.size()) net.mirror(x, counts[static_cast<std::size_t>(i)]);
  }
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 3}, "fc"), {}, "loss");
  return std::make_shared<Network>(std::move(net).build());
}

// How often each layer is run again.
std::map<std::string, int> replays(const Plan& plan) {
  std::map<std::string, int> result;
  const Phase& phase = plan.phases.front();
  for (const Op& op : phase.ops)
    if (op.is_run() && phase.step->task(op.run().task).kind == TaskKind::replay)
      ++result[phase.step->layer_names[phase.step->task(op.run().task).layer.index()]];
  return result;
}

TEST(Mirror, RunsLayersAgainAsOftenAsTheirCountsSay) {
  // One level: each dropped layer once; c3 is kept.
  using Counts = std::map<std::string, int>;
  const Step one = build_step(chain(6, {1, 1, 0, 1, 1}), {.batch = 2});
  EXPECT_EQ(replays(*plan("sublinear", one).plan), (Counts{{"c1", 1}, {"c2", 1}, {"c4", 1}, {"c5", 1}}));
  // Two levels: c1 is run on the way to c2, and again for its own sake.
  const Step two = build_step(chain(6, {2, 1, 2, 0, 1}), {.batch = 2});
  EXPECT_EQ(replays(*plan("sublinear", two).plan), (Counts{{"c1", 2}, {"c2", 1}, {"c3", 1}, {"c5", 1}}));
}

TEST(Mirror, CountsOfTheOptionsGoBeforeTheNetworksOwn) {
  const Step step = build_step(chain(4, {1, 0, 0, 0}), {.batch = 2});
  PlannerOptions options;
  options.policy.set<SublinearOptions>().mirror = {{"c1", 0}, {"c2", 1}};
  EXPECT_EQ(replays(*plan("sublinear", step, options).plan), (std::map<std::string, int>{{"c2", 1}}));
  options.policy.set<SublinearOptions>().mirror = {{"c1", 1'000'000'000}};
  EXPECT_THROW((void)plan("sublinear", step, options), Error);
  options.policy.set<SublinearOptions>().mirror = {{"c9", 1}};
  try {
    (void)plan("sublinear", step, options);
    FAIL() << "a layer that is not there was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("c9"), std::string::npos);
  }
}

// Whatever the counts, on any graph: make_plan's checker stands behind the values.
TEST(Mirror, TakesAnyCountsOnAnyGraph) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    testing_support::RandomNetwork random(seed);
    const Step step =
        build_step(std::make_shared<Network>(random.make(4 + static_cast<int>(seed % 37))),
                   {.batch = 2, .rules = seed % 3 == 0 ? Rules::superneurons : Rules::minimal, .fuse = seed % 3 == 1});
    PlannerOptions options;
    std::mt19937 numbers(seed);
    for (std::size_t l = 1; l < step.layer_names.size(); ++l)
      options.policy.set<SublinearOptions>().mirror.push_back(
          {step.layer_names[l], static_cast<std::int32_t>(numbers() % 4)});
    const PlanResult result = plan("sublinear", step, options);
    ASSERT_TRUE(result.plan) << seed;
    for (const auto& [layer, times] : replays(*result.plan)) {
      const auto given = std::find_if(options.policy.set<SublinearOptions>().mirror.begin(),
                                      options.policy.set<SublinearOptions>().mirror.end(),
                                      [&](const MirrorCount& m) { return m.layer == layer; });
      EXPECT_LE(times, given->count) << layer << " " << seed;
    }
  }
}

TEST(SplitPoints, AreTheBlocksOfAResNetAndTheStepsOfAnLstm) {
  const auto points_of = [](const Step& step) {
    const StepFacts facts(step, {});
    const SplitPoints points(facts, replayable_tasks(facts));
    return std::vector<SplitPoint>(points.points().begin(), points.points().end());
  };
  const Step resnet = merge_replayable(step_of("resnet50", 2, false));
  const std::vector<SplitPoint> blocks = points_of(resnet);
  int found = 0;
  for (std::size_t t = 1; t < resnet.ordered_tasks; ++t)
    if (resnet.tasks[t].kind == TaskKind::forward && resnet.layer_kind(resnet.tasks[t - 1]) == LayerKind::add)
      found += std::any_of(blocks.begin(), blocks.end(),
                           [&](const SplitPoint& point) { return point.position == static_cast<std::int32_t>(t); });
  EXPECT_EQ(found, 15);  // behind the last one less is waiting
  // Between two steps the states h and c of both layers wait, 16 floats for each of 8 samples, and
  // the inputs of the later steps, 50 floats each.
  const std::vector<SplitPoint> steps = points_of(merge_replayable(step_of("lstm:2,16,12@11", 8, false)));
  for (std::int64_t later = 1; later < 12; ++later) {
    const std::int64_t waiting = 4 * 512 + later * Bytes(1600).aligned().count();
    EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [&](const SplitPoint& point) {
      return point.waiting == waiting;
    })) << later;
  }
}

TEST(DropCheap, KeepsConvolutionsAndProducts) {
  for (const char* model : {"resnet50", "densenet121", "lstm:2,64,8", "inception-v3"}) {
    const Step step = step_of(model, 4, false);
    const PlanResult result = plan("drop-cheap", step);
    const Phase& phase = result.plan->phases.front();
    int again = 0;
    for (const Op& op : phase.ops) {
      const Task& task = phase.step->task(op.run().task);
      if (task.kind != TaskKind::replay) continue;
      ++again;
      const LayerKind kind = phase.step->layer_kind(task);
      EXPECT_TRUE(kind != LayerKind::convolution && kind != LayerKind::fully_connected) << model;
    }
    EXPECT_GT(again, 0) << model;
    EXPECT_LT(summarize(*result.plan).peak_data_bytes, summarize(*plan("liveness", step).plan).peak_data_bytes)
        << model;
  }
}

// log y = exponent log x + c, by least squares.
double fitted_exponent(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [depth, bytes] : points) {
    x += std::log(depth);
    y += std::log(bytes);
    xx += std::log(depth) * std::log(depth);
    xy += std::log(depth) * std::log(bytes);
  }
  const auto n = static_cast<double>(points.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

TEST(Sublinear, MemoryGrowsWithTheRootOfDepthAndRecursiveBelowThat) {
  std::vector<std::pair<double, double>> liveness, sublinear, recursive;
  for (const int depth : {101, 302, 1001, 3002, 10001}) {
    const Step step = step_of(fmt::format("preresnet:{}", depth), 2);
    const auto data = [&](std::string_view policy) {
      return static_cast<double>(summarize(*plan(policy, step).plan).peak_data_bytes.count());
    };
    liveness.emplace_back(depth, data("liveness"));
    sublinear.emplace_back(depth, data("sublinear"));
    recursive.emplace_back(depth, data("recursive"));
  }
  EXPECT_GT(fitted_exponent(liveness), 0.8);
  EXPECT_LE(fitted_exponent(sublinear), 0.55);
  EXPECT_LE(fitted_exponent(recursive), 0.2);
  for (std::size_t i = 0; i < recursive.size(); ++i) EXPECT_LT(recursive[i].second, sublinear[i].second);
}

TEST(Recursive, KeepsMoreOnEachLevelForLessTime) {
  const Step step = step_of("preresnet:302", 2);
  int before = INT_MAX;
  for (const int kept : {1, 2, 4, 8}) {
    PlannerOptions options;
    options.policy.set<RecursiveOptions>().kept = kept;
    const int again = summarize(*plan("recursive", step, options).plan).recomputed_tasks;
    EXPECT_LT(again, before) << kept;
    before = again;
  }
  PlannerOptions options;
  options.policy.set<RecursiveOptions>().kept = 0;
  EXPECT_THROW((void)plan("recursive", step, options), Error);
}

// The paper's headline: 48G to under 7G for about 30% more time, modelled on its device.
TEST(Sublinear, ThousandLayersInSevenGigabytes) {
  const Device device = find_device("titan-x").rates();
  const DeviceModel cost(device);
  Step step = step_of("preresnet:1001", 32);
  annotate_for(step, device);
  const auto planned = [&](std::string_view policy, std::optional<Bytes> memory) {
    PlannerOptions options;
    options.memory[Tier::device] = memory;
    return *make_plan(find_policy(policy), step, cost, options).plan;
  };
  const Plan baseline = planned("baseline", {});
  const PlanSummary whole = summarize(baseline), shared = summarize(planned("sharing", {}));
  const Plan plan = planned("sublinear", Bytes(9'200'000'000));
  const PlanSummary summary = summarize(plan);
  EXPECT_LT(summary.peak_data_bytes.count(), 7'000'000'000);
  EXPECT_GT(static_cast<double>(whole.peak_data_bytes.count()),
            6.8 * static_cast<double>(summary.peak_data_bytes.count()));
  EXPECT_GT(static_cast<double>(shared.peak_data_bytes.count()),
            5 * static_cast<double>(summary.peak_data_bytes.count()));
  EXPECT_LE(simulate(plan, cost).seconds, 1.3 * simulate(baseline, cost).seconds);
}

// What a plan takes besides parameters, their gradients and optimizer state.
std::int64_t feature_map_bytes(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  std::int64_t others = 0;
  for (const Storage& storage : phase.step->storages)
    if (!is_data(storage.tensor_class) && storage.tensor_class != TensorClass::input)
      others += storage.bytes.aligned().count();
  return summarize(plan).peak[Tier::device].count() - others;
}

TEST(Sublinear, LongSequencesInAQuarterOfSharing) {
  const Step step = step_of("lstm:4,1024,64", 64);
  const Plan sharing = *plan("sharing", step).plan, sublinear = *plan("sublinear", step).plan;
  EXPECT_GE(feature_map_bytes(sharing), 4 * feature_map_bytes(sublinear));
}

TEST(Sublinear, MoreMemoryIsNeverSlower) {
  const RooflineModel cost(generic_cpu());
  const Step step = step_of("resnet50", 8);
  const Bytes low = plan("sublinear", step).floor[Tier::device], high = plan("liveness", step).floor[Tier::device];
  double before = INFINITY;
  for (const std::int64_t tenths : {0, 2, 4, 6, 8, 10, 11}) {
    PlannerOptions options;
    options.memory[Tier::device] =
        Bytes((low.count() + (high.count() - low.count()) / 10 * tenths) / kAlignment * kAlignment);
    const double seconds = simulate(*plan("sublinear", step, options).plan, cost).seconds;
    EXPECT_LE(seconds, before * (1 + 1e-9)) << tenths;
    before = seconds;
  }
  EXPECT_DOUBLE_EQ(before, ideal_seconds(step, cost));
}

TEST(ForwardOnly, ChainsTakeNearlyConstantMemory) {
  for (const char* policy : {"drop-cheap", "sublinear", "recursive", "vdnn-conv", "vdnn-all"}) {
    const auto data = [&](std::string_view model) {
      return summarize(*plan(policy, step_of(model, 4, true, false)).plan).peak_data_bytes;
    };
    EXPECT_EQ(data("preresnet:101"), data("preresnet:2000")) << policy;
  }
}

}  // namespace
}  // namespace tide
