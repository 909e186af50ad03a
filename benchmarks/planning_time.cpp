// How long planning takes as networks get deeper: a ResNet with more and more bottleneck
// blocks in its third stage, from 10^2 to 10^5 layers. The last lines give the growth.
#include <benchmark/benchmark.h>

#include "plan/checker.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

// About `layers` layers: ten per block.
NetworkPtr deep_resnet(std::int64_t layers) {
  return std::make_shared<Network>(
      make_model(fmt::format("resnet:3,4,{},3", std::max<std::int64_t>(layers / 10 - 10, 1))));
}

void plan_deep(benchmark::State& state, const char* policy) {
  const NetworkPtr network = deep_resnet(state.range(0));
  const Step step = build_step(network, {});
  const RooflineModel cost(generic_cpu());
  double check = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Step copy = step;
    state.ResumeTiming();
    const PlanResult result = find_policy(policy).plan(std::move(copy), cost, {});
    benchmark::DoNotOptimize(result.floor[Tier::device]);
  }
  check = make_plan(find_policy(policy), step, cost, {}).check_seconds;
  state.counters["layers"] = static_cast<double>(network->layers.size());
  state.counters["tasks"] = static_cast<double>(step.ordered_tasks);
  state.counters["check_s"] = check;
  state.SetComplexityN(static_cast<std::int64_t>(network->layers.size()));
}

void build_deep(benchmark::State& state) {
  const NetworkPtr network = deep_resnet(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(build_step(network, {}).tasks.size());
  state.SetComplexityN(static_cast<std::int64_t>(network->layers.size()));
}

void all_sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(100)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond)->Complexity();
}

BENCHMARK(build_deep)->Apply(all_sizes);
BENCHMARK_CAPTURE(plan_deep, baseline, "baseline")->Apply(all_sizes);
BENCHMARK_CAPTURE(plan_deep, inplace, "inplace")->Apply(all_sizes);
BENCHMARK_CAPTURE(plan_deep, sharing, "sharing")->Apply(all_sizes);
BENCHMARK_CAPTURE(plan_deep, liveness, "liveness")->Apply(all_sizes);

}  // namespace
}  // namespace tide

BENCHMARK_MAIN();
