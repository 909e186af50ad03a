// Table 2: what allocating with cudaMalloc and cudaFree costs, where a pool costs nothing.
#include "report/reproduce/superneurons.h"
#include "report/reproduce/workbench.h"

namespace tide::reproduce::superneurons {
namespace {

// A cudaMalloc and its cudaFree, which waits for the device. Chosen so that the paper's
// ResNet50 row (16/21.5 s against 16/32.9 s) comes out over the pairs that liveness makes
// there; the other networks are predictions from it. On a current driver the pair costs
// 0.25 ms for 256 MiB (H200: 76 and 168 us).
constexpr double kPairSeconds = 0.385e-3;

// Blocks that a runtime with liveness asks for in one step: every stay and every workspace.
std::int64_t pairs_of(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  std::int64_t pairs = 0;
  for (const Residency& stay : phase.residencies)
    if (!phase.step->storage(stay.storage).persistent) ++pairs;
  for (const Op& op : phase.ops)
    if (op.is_run() && !workspace_bytes(*phase.step, op.run()).is_zero()) ++pairs;
  return pairs;
}

}  // namespace

Report table2(Workbench& bench) {
  Report report;
  report.setting = "batch 128 for AlexNet, 16 for the rest; liveness on a k40c, step times modelled";
  struct Row {
    double cuda, pool, speedup;  // in images per second, and the ratio as printed
    int cuda_decimals, pool_decimals;
  };
  constexpr Row kRows[] = {{359.4, 401.6, 1.12, 1, 1}, {12.1, 14.4, 1.19, 1, 1},  {6.77, 10.0, 1.48, 2, 1},
                           {21.5, 32.9, 1.53, 1, 1},   {11.3, 18.95, 1.68, 1, 2}, {7.46, 13.2, 1.77, 2, 1}};
  const auto networks = paper_networks();
  Series series{
      "table2", {"network", "pairs", "step_seconds", "overhead_seconds", "paper_overhead_seconds"}, {}, false};
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const std::int64_t batch = i == 0 ? 128 : 16;
    const auto images = static_cast<double>(batch);
    const Planned outcome = bench.plan({.model = networks[i].model, .batch = batch, .policy = "liveness"});
    const std::int64_t pairs = pairs_of(*outcome.result.plan);
    const double overhead = static_cast<double>(pairs) * kPairSeconds;
    const double paper_overhead = images / kRows[i].cuda - images / kRows[i].pool;
    const std::string name(networks[i].name);
    report.modelled(name + ", cudaMalloc", "img/s", kRows[i].cuda, images / (outcome.seconds + overhead),
                    kRows[i].cuda_decimals, 1);
    report.modelled(name + ", pool", "img/s", kRows[i].pool, images / outcome.seconds, kRows[i].pool_decimals, 1);
    report.modelled(name + ", speedup", "x", kRows[i].speedup, (outcome.seconds + overhead) / outcome.seconds, 2, 1);
    report.modelled(name + fmt::format(", time of {} pairs", pairs), "ms", 1e3 * paper_overhead, 1e3 * overhead, 1, 2);
    series.rows.push_back({name, fmt::format("{}", pairs), fmt::format("{:.6f}", outcome.seconds),
                           fmt::format("{:.6f}", overhead), fmt::format("{:.6f}", paper_overhead)});
  }
  report.notes = {
      fmt::format("Nothing is measured here: the step is the device model's, and a pair of cudaMalloc and cudaFree is "
                  "taken to cost {:.3g} ms, which is what the paper's ResNet50 row amounts to; the other rows follow "
                  "from it. Where the model's step is faster than the paper's, the same overhead weighs more.",
                  1e3 * kPairSeconds),
      "The paper's value is batch/(img/s with cudaMalloc) - batch/(img/s with the pool). One cost for blocks of all "
      "sizes is too simple for VGG16, whose blocks are the largest. A request to the pool takes some 0.1 us "
      "(benchmarks/block_pool), left out."};
  report.series.push_back(std::move(series));
  return report;
}

}  // namespace tide::reproduce::superneurons
