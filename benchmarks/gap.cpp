// How far `auto` is from what no plan can beat: networks and budgets, by the model of a device.
//   gap [DEVICE...]          default: h200 titan-x k40m
// Budgets are shares of what liveness needs. Times are over the time of the same tasks in unlimited memory.
#include <algorithm>
#include <vector>

#include "base/median.h"
#include "base/stopwatch.h"
#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/timeline.h"
#include "planner/bound/lower_bound.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "planner/search/fusing.h"
#include "planner/search/search.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct Case {
  const char* model;
  std::int64_t batch;
};
constexpr Case kCases[] = {{"alexnet", 200},     {"vgg16", 32},       {"vgg19", 32},          {"resnet18", 128},
                           {"resnet50", 184},    {"resnet101", 64},   {"resnet152", 32},      {"inception-v3", 64},
                           {"inception-v4", 32}, {"densenet121", 64}, {"preresnet:164", 128}, {"lstm:4,1024,64", 64}};
constexpr int kPercents[] = {90, 80, 70, 66, 60, 53, 45, 40, 33, 25};

void run(const char* device_name) {
  const Device device = find_device(device_name).rates();
  const DeviceModel cost(device);
  fmt::print(
      "| {} | batch | budget | GiB | bound | auto | gap | planned s | bound s "
      "|\n|---|---|---|---|---|---|---|---|---|\n",
      device_name);
  std::vector<double> gaps, roomy;
  double longest_plan = 0, longest_bound = 0;
  for (const Case& row : kCases) {
    const auto network = std::make_shared<Network>(make_model(row.model));
    const BuildStep build = [&](const StepChoice& choice) {
      Step step = build_step(network, {.batch = row.batch, .fuse = true, .fuse_limit = choice.fuse_limit});
      annotate_for(step, device);
      return step;
    };
    const double ideal = ideal_seconds(build({}), cost);
    const Bytes peak = make_plan(find_policy("liveness"), build({}), cost, {}).floor[Tier::device];
    for (const int percent : kPercents) {
      PlannerOptions options{.parameters = Parameters::device};
      options.memory[Tier::device] = Bytes(peak.count() / 100 * percent / kAlignment * kAlignment);
      const Stopwatch watch;
      const LowerBound bound = fused_lower_bound(build, cost, options);
      const double bound_seconds = watch.seconds();
      const PlanResult result = search_plan(find_policy("auto"), build, cost, options);
      longest_bound = std::max(longest_bound, bound_seconds);
      longest_plan = std::max(longest_plan, result.plan_seconds);
      const double gibibytes = static_cast<double>(options.memory[Tier::device]->count()) / (1 << 30);
      if (!result.plan) {
        fmt::print("| {} | {} | {}% | {:.2f} | {:.3f} | - | does not fit | {:.2f} | {:.2f} |\n", row.model, row.batch,
                   percent, gibibytes, bound.seconds / ideal, result.plan_seconds, bound_seconds);
        continue;
      }
      const double seconds = simulate(*result.plan, cost).seconds;
      const double gap = seconds / bound.seconds - 1;
      gaps.push_back(gap);
      if (percent >= 45) roomy.push_back(gap);
      fmt::print("| {} | {} | {}% | {:.2f} | {:.3f} | {:.3f} | {:.1f}% | {:.2f} | {:.2f} |\n", row.model, row.batch,
                 percent, gibibytes, bound.seconds / ideal, seconds / ideal, 100 * gap, result.plan_seconds,
                 bound_seconds);
      std::fflush(stdout);
    }
  }
  fmt::print(
      "\n{}: median gap {:.1f}%, largest {:.1f}%; of budgets from 45% on: median {:.1f}%, largest {:.1f}%. "
      "Longest: {:.2f} s to plan, {:.2f} s to bound.\n\n",
      device_name, 100 * median(gaps), 100 * *std::max_element(gaps.begin(), gaps.end()), 100 * median(roomy),
      100 * *std::max_element(roomy.begin(), roomy.end()), longest_plan, longest_bound);
}

}  // namespace
}  // namespace tide

int main(int argc, char** argv) {
  if (argc < 2)
    for (const char* const device : {"h200", "titan-x", "k40m"}) tide::run(device);
  for (int i = 1; i < argc; ++i) tide::run(argv[i]);
}
