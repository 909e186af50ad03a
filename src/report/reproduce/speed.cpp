// Figure 14: speed as the batch grows, until memory is short.
#include <array>

#include "report/reproduce/superneurons.h"
#include "report/reproduce/workbench.h"

namespace tide::reproduce::superneurons {

Report figure14(Workbench& bench) {
  Report report;
  report.setting = "a titan-xp with 12 GiB; policy superneurons, rules superneurons; step times modelled";
  constexpr std::array<std::array<std::int64_t, 6>, 6> kBatches{{{128, 256, 512, 1024, 1408, 1792},
                                                                 {16, 32, 64, 96, 160, 224},
                                                                 {8, 16, 32, 64, 128, 240},
                                                                 {16, 32, 64, 128, 256, 384},
                                                                 {16, 32, 64, 128, 192, 256},
                                                                 {8, 16, 32, 64, 128, 176}}};
  Series series{"figure14", {"network", "batch", "img_s", "moved_gb", "recomputed", "of_ideal"}, {}, true};
  const auto networks = paper_networks();
  for (std::size_t i = 0; i < networks.size(); ++i) {
    double best = 0, last = 0;
    for (const std::int64_t batch : kBatches[i]) {
      Setting setting{.model = networks[i].model, .batch = batch, .device = "titan-xp"};
      setting.options.memory[Tier::device] = Bytes(12LL << 30);
      const Planned outcome = bench.plan(setting);
      if (!outcome.fits()) {
        series.rows.push_back({std::string(networks[i].name), fmt::format("{}", batch), "does not fit", "", "", ""});
        continue;
      }
      const Planned ideal =
          bench.plan({.model = networks[i].model, .batch = batch, .policy = "baseline", .device = "titan-xp"});
      last = static_cast<double>(batch) / outcome.seconds;
      best = std::max(best, last);
      series.rows.push_back(
          {std::string(networks[i].name), fmt::format("{}", batch), fmt::format("{:.1f}", last),
           fmt::format("{:.1f}", gigabytes(outcome.summary.offloaded_bytes + outcome.summary.prefetched_bytes)),
           fmt::format("{}", outcome.summary.recomputed_tasks),
           fmt::format("{:.3f}", ideal.seconds / outcome.seconds)});
    }
    report.only_ours(fmt::format("{}, largest batch over best", networks[i].name), "%",
                     best > 0 ? 100 * last / best : 0, 1, 1);
  }
  report.notes = {
      "The paper's curves carry no numbers. Its text says that speed slowly deteriorates as the batch grows and more "
      "tensors are swapped; of_ideal is the speed against the same tasks in unlimited memory."};
  report.series.push_back(std::move(series));
  return report;
}

}  // namespace tide::reproduce::superneurons
