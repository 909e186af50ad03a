// The memory pool against malloc: the allocations and releases of one training step, as
// SuperNeurons' runtime would make them (liveness, its rules), for the networks of its
// Table 2. Nothing touches the memory, so malloc pays for its own bookkeeping and, above its
// threshold, for mapping address space, but for no page fault; with `touch` the first page
// of each block is written. `share` is the part of the step's modelled time on a K40c.
//
// cudaMalloc and cudaFree belong to the benchmark of a CUDA backend.
#include "memory/block_pool.h"

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/timeline.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

// One request to an allocator: `bytes` for a new block, or none to give block `slot` back.
struct Request {
  std::size_t slot = 0;
  Bytes bytes;
};

struct Sequence {
  std::vector<Request> requests;
  std::size_t slots = 0;
  double step_seconds = 0;
};

Sequence sequence_of(const std::string& model, std::int64_t batch) {
  Step step = build_step(std::make_shared<const Network>(make_model(model)),
                         {.batch = batch, .rules = Rules::superneurons, .training = true, .optimizer = {}});
  const Device device = find_device("k40c").rates();
  annotate_for(step, device);
  const DeviceModel cost(device);
  const PlanResult result = make_plan(find_policy("liveness"), std::move(step), cost, {});
  const Phase& phase = result.plan->phases.front();

  Sequence sequence;
  sequence.step_seconds = simulate(*result.plan, cost).seconds;
  std::vector<std::vector<std::size_t>> begin(phase.ops.size()), end(phase.ops.size());
  std::vector<Bytes> sizes;
  for (const Residency& stay : phase.residencies) {
    if (phase.step->storage(stay.storage).persistent) continue;
    begin[static_cast<std::size_t>(std::max(stay.first, 0))].push_back(sizes.size());
    end[std::min(static_cast<std::size_t>(std::max(stay.last, 0)), phase.ops.size() - 1)].push_back(sizes.size());
    sizes.push_back(phase.step->storage(stay.storage).bytes);
  }
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const Bytes workspace = phase.step->algorithms_of(phase.ops[i].run().task)[phase.ops[i].run().algorithm].workspace;
    if (!workspace.is_zero()) {
      begin[i].push_back(sizes.size());
      end[i].push_back(sizes.size());
      sizes.push_back(workspace);
    }
    for (const std::size_t slot : begin[i]) sequence.requests.push_back({slot, sizes[slot]});
    for (const std::size_t slot : end[i]) sequence.requests.push_back({slot, Bytes()});
  }
  sequence.slots = sizes.size();
  return sequence;
}

void finish(benchmark::State& state, const Sequence& sequence) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(sequence.requests.size()));
  state.counters["requests"] = static_cast<double>(sequence.requests.size());
  state.counters["step_s"] = sequence.step_seconds;
  state.counters["share"] = benchmark::Counter(
      sequence.step_seconds, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void pool_step(benchmark::State& state, const Sequence& sequence) {
  BlockPool pool(Bytes(1LL << 40));  // addresses only
  std::vector<BlockPool::NodeId> nodes(sequence.slots);
  for ([[maybe_unused]] auto _ : state)
    for (const Request& request : sequence.requests) {
      if (request.bytes.is_zero())
        pool.release(nodes[request.slot]);
      else
        nodes[request.slot] = pool.allocate(request.bytes)->id;
    }
  finish(state, sequence);
  state.counters["high_water_gib"] = static_cast<double>(pool.high_water().count()) / (1 << 30);
}

void malloc_step(benchmark::State& state, const Sequence& sequence, bool touch) {
  std::vector<void*> blocks(sequence.slots);
  for ([[maybe_unused]] auto _ : state)
    for (const Request& request : sequence.requests) {
      if (request.bytes.is_zero()) {
        std::free(blocks[request.slot]);
        continue;
      }
      blocks[request.slot] = std::malloc(request.bytes.size());
      if (touch) *static_cast<volatile char*>(blocks[request.slot]) = 1;
      benchmark::DoNotOptimize(blocks[request.slot]);
    }
  finish(state, sequence);
}

}  // namespace
}  // namespace tide

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  struct Case {
    const char* model;
    std::int64_t batch;
  };
  for (const Case& one :
       {Case{"alexnet", 128}, Case{"vgg16", 16}, Case{"inception-v4", 16}, Case{"superneurons/resnet50", 16},
        Case{"superneurons/resnet101", 16}, Case{"superneurons/resnet152", 16}}) {
    const auto sequence = std::make_shared<const tide::Sequence>(tide::sequence_of(one.model, one.batch));
    const std::string name = one.model;
    benchmark::RegisterBenchmark((name + "/pool").c_str(), [sequence](benchmark::State& state) {
      tide::pool_step(state, *sequence);
    })->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((name + "/malloc").c_str(), [sequence](benchmark::State& state) {
      tide::malloc_step(state, *sequence, false);
    })->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((name + "/malloc_touch").c_str(), [sequence](benchmark::State& state) {
      tide::malloc_step(state, *sequence, true);
    })->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();
}
