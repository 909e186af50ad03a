// The experiments of Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).
#include <array>
#include <cmath>

#include "report/reproduce/experiment.h"
#include "report/reproduce/workbench.h"

namespace tide::reproduce {
namespace {

struct Strategy {
  std::string_view name, policy;  // the paper's and ours
};
constexpr std::array<Strategy, 5> kStrategies{{{"no optimization", "baseline"},
                                               {"inplace", "inplace"},
                                               {"sharing", "sharing"},
                                               {"drop bn-relu", "drop-cheap"},
                                               {"sublinear plan", "sublinear"}}};
constexpr std::array<int, 5> kDepths{101, 200, 302, 500, 1001};  // 3 units + 2
constexpr std::array<int, 5> kLengths{16, 32, 64, 128, 256};

std::string resnet(int depth) { return fmt::format("preresnet:{}", depth); }
std::string lstm(int length) { return fmt::format("lstm:4,1024,{}", length); }

Setting setting_of(std::string_view model, std::int64_t batch, std::string_view policy, bool workspaces) {
  return {.model = model,
          .batch = batch,
          .policy = policy,
          .device = "titan-x",
          .rules = Rules::minimal,
          .workspaces = workspaces};
}

// What the plan allocates for feature maps, as the paper counts: neither parameters nor workspaces.
double feature_maps(const PlanSummary& summary) {
  Bytes others = summary.workspace_at_peak;
  for (int c = 0; c < kTensorClasses; ++c)
    if (!is_data(static_cast<TensorClass>(c))) others += summary.classes[static_cast<std::size_t>(c)];
  return gigabytes(summary.peak[Tier::device] - others);
}

// The exponent of y = a x^b through the first and the last point.
double exponent(double x0, double y0, double x1, double y1) { return std::log(y1 / y0) / std::log(x1 / x0); }

// One curve per strategy over networks of growing size; by strategy: the first value and the last.
template <typename Sizes, typename Name>
std::vector<std::pair<double, double>> memory_curves(Workbench& bench, const Sizes& sizes, Name name,
                                                     std::int64_t batch, std::span<const Strategy> strategies,
                                                     Series& series) {
  std::vector<std::pair<double, double>> ends(strategies.size());
  for (const Strategy& strategy : strategies) series.columns.push_back(fmt::format("{} GB", strategy.name));
  for (const int size : sizes) {
    std::vector<std::string> row{fmt::format("{}", size)};
    for (std::size_t s = 0; s < strategies.size(); ++s) {
      const double memory =
          feature_maps(bench.plan(setting_of(name(size), batch, strategies[s].policy, false)).summary);
      row.push_back(fmt::format("{:.3f}", memory));
      if (size == sizes.front()) ends[s].first = memory;
      ends[s].second = memory;
    }
    series.rows.push_back(std::move(row));
  }
  return ends;
}

Report figure5(Workbench& bench) {
  Report report;
  report.setting =
      "pre-activation ResNets at batch 32, 224 x 224; memory for feature maps by static allocation, GB is 10^9 bytes";
  Series series{"figure5_memory", {"layers"}, {}, true};
  const auto ends = memory_curves(bench, kDepths, resnet, 32, kStrategies, series);
  report.series.push_back(std::move(series));
  const double none = ends[0].second, shared = ends[2].second, planned = ends[4].second;
  report.remarked("1001 layers, sublinear plan", "GB", "under 7", planned, 2, 1);
  report.remarked("no optimization over sharing", "times", "2 to 3", none / shared, 2, 1);
  report.only_ours("sharing over sublinear plan", "times", shared / planned, 1, 1);
  for (std::size_t s = 0; s < kStrategies.size(); ++s)
    report.remarked(fmt::format("growth with depth, {}", kStrategies[s].name), "exponent",
                    s == 4 ? "sublinear" : "linear",
                    exponent(kDepths.front(), ends[s].first, kDepths.back(), ends[s].second), 2);
  report.notes = {
      "The paper's curves carry no numbers besides 48G and 7G, and the depth of each stage is not told; here the two "
      "middle "
      "stages grow. What it calls 48G is after sharing, which comes to less here: batch norms and additions save "
      "nothing "
      "that our backward tasks do not read."};
  return report;
}

Report figure6(Workbench& bench) {
  Report report;
  report.setting =
      "LSTM of four layers, 1024 hidden, batch 64, 50 inputs and 5000 classes at every step; memory as in Figure 5";
  constexpr std::array<Strategy, 4> kChosen{kStrategies[0], kStrategies[1], kStrategies[2], kStrategies[4]};
  Series series{"figure6_memory", {"steps"}, {}, true};
  const auto ends = memory_curves(bench, kLengths, lstm, 64, kChosen, series);
  report.series.push_back(std::move(series));
  report.remarked("sharing over sublinear plan, longest", "times", "more than 4", ends[2].second / ends[3].second, 1,
                  1);
  report.remarked("growth with length, sublinear plan", "exponent", "sublinear",
                  exponent(kLengths.front(), ends[3].first, kLengths.back(), ends[3].second), 2, 1);
  report.notes = {
      "Each step's softmax keeps its output, 1.3 MB, because running a loss again would count it twice: that part of "
      "the "
      "sublinear plan grows with the length."};
  return report;
}

Report figure7(Workbench& bench) {
  Report report;
  report.setting =
      "seconds of one step, modelled on a titan-x; sublinear once without a budget and once within 7 GB for feature "
      "maps";
  Series series{"figure7_time", {"network", "sharing s", "sublinear s", "more %", "within 7 GB s", "more %"}, {}, true};
  double smallest = 0, within = 0;
  const auto add = [&](const std::string& model, std::int64_t batch) {
    const Planned shared = bench.plan(setting_of(model, batch, "sharing", true));
    const Planned planned = bench.plan(setting_of(model, batch, "sublinear", true));
    Setting setting = setting_of(model, batch, "sublinear", true);
    setting.options.memory[Tier::device] =
        Bytes(7'000'000'000) + (planned.summary.peak_live_bytes - planned.summary.peak_data_bytes);
    const Planned budgeted = bench.plan(setting);
    smallest = 100 * (planned.seconds / shared.seconds - 1);
    within = 100 * (budgeted.seconds / shared.seconds - 1);
    series.rows.push_back({model, fmt::format("{:.3f}", shared.seconds), fmt::format("{:.3f}", planned.seconds),
                           fmt::format("{:.1f}", smallest), fmt::format("{:.3f}", budgeted.seconds),
                           fmt::format("{:.1f}", within)});
  };
  for (const int length : kLengths) add(lstm(length), 64);
  report.remarked("LSTM, longest: sublinear", "% more", "roughly 30", smallest, 1);
  for (const int depth : kDepths) add(resnet(depth), 32);
  report.remarked("1001 layers: sublinear", "% more", "roughly 30", smallest, 1);
  report.remarked("1001 layers: sublinear within 7 GB", "% more", "roughly 30", within, 1, 1);
  report.notes = {"Within a budget the plan keeps what takes longest to run again, as far as memory allows."};
  report.series.push_back(std::move(series));
  return report;
}

}  // namespace

std::span<const Experiment> sublinear_experiments() {
  static constexpr std::array<Experiment, 3> kExperiments{{
      {"figure5", "Memory of ResNets by depth", figure5},
      {"figure6", "Memory of LSTMs by length", figure6},
      {"figure7", "Time of both", figure7},
  }};
  return kExperiments;
}

}  // namespace tide::reproduce
