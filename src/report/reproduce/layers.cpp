// Figures 2 and 8: where memory and time go in whole networks.
#include <array>

#include "cost/algorithms.h"
#include "cost/device_model.h"
#include "cost/devices.h"
#include "network/kind.h"
#include "plan/timeline.h"
#include "report/reproduce/superneurons.h"
#include "report/reproduce/workbench.h"

namespace tide::reproduce::superneurons {
namespace {

// By PaperType.
constexpr std::array<std::string_view, 9> kTypes{"CONV", "FC",      "POOL",    "ACT",  "BN",
                                                 "LRN",  "DROPOUT", "SOFTMAX", "other"};
static_assert(kTypes.size() == static_cast<std::size_t>(PaperType::other) + 1);

std::size_t type_of(LayerKind kind) { return static_cast<std::size_t>(description_of(kind).paper_type); }

std::int64_t paper_batch(std::string_view name) { return name == "AlexNet" ? 200 : 32; }

struct Shares {
  std::array<double, kTypes.size()> time{}, memory{};  // of the whole
  double cheap_forward = 0;                            // time of POOL, ACT, BN and LRN forward
  [[nodiscard]] static double cheap(const std::array<double, kTypes.size()>& shares) {
    return shares[2] + shares[3] + shares[4] + shares[5];
  }
};

Shares shares_of(const Step& step, const CostModel& cost) {
  Shares shares;
  double time = 0, memory = 0;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const Task& task = step.tasks[t];
    if (task.kind == TaskKind::update || task.kind == TaskKind::norm) continue;  // the paper times the two passes
    const double seconds = fastest_seconds(step, cost, TaskId(t));
    const std::size_t type = type_of(step.layer_kind(task));
    shares.time[type] += seconds;
    time += seconds;
    if (task.kind == TaskKind::forward && type >= 2 && type <= 5) shares.cheap_forward += seconds;
  }
  std::vector<bool> counted(step.storages.size(), false);
  for (const Tensor& tensor : step.tensors) {
    if (!is_data(step.storage(tensor.storage).tensor_class) || counted[tensor.storage.index()]) continue;
    counted[tensor.storage.index()] = true;
    const auto bytes = static_cast<double>(step.storage(tensor.storage).bytes.count());
    shares.memory[type_of(step.layer_kinds[tensor.layer.index()])] += bytes;
    memory += bytes;
  }
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    shares.time[i] /= time;
    shares.memory[i] /= memory;
  }
  shares.cheap_forward /= time;
  return shares;
}

}  // namespace

Report figure2(Workbench& bench) {
  Report report;
  report.setting =
      "batch 200 for AlexNet, 32 for the rest; every tensor its own memory; workspaces and speed modelled for a k40c";
  const DeviceModel cost(find_device("k40c").rates());
  Series series{
      "figure2", {"network", "batch", "data_gib", "largest_workspace_gib", "all_workspaces_gib", "speedup"}, {}, true};
  for (const PaperNetwork& network : paper_networks()) {
    const std::int64_t batch = paper_batch(network.name);
    const Step step = bench.step({.model = network.model, .batch = batch});
    const Step bare = bench.step({.model = network.model, .batch = batch, .workspaces = false});
    Bytes data, largest, all;
    for (const Storage& storage : step.storages)
      if (is_data(storage.tensor_class)) data += storage.bytes;
    for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
      const Bytes workspace = step.algorithms_of(TaskId(t))[0].workspace;
      largest = std::max(largest, workspace);
      all += workspace;
    }
    const double speedup = ideal_seconds(bare, cost) / ideal_seconds(step, cost);
    series.rows.push_back({std::string(network.name), fmt::format("{}", batch), fmt::format("{:.2f}", gibibytes(data)),
                           fmt::format("{:.2f}", gibibytes(largest)), fmt::format("{:.2f}", gibibytes(all)),
                           fmt::format("{:.2f}", speedup)});
    if (network.name == "ResNet152") report.counted("ResNet152, data", "GB", 18.5, gibibytes(data), 1, 1);
    if (network.name == "InceptionV4") {
      report.counted("InceptionV4, data", "GB", 44.3, gibibytes(data), 1, 1);
      report.counted("InceptionV4, data and all workspaces", "GB", 44.3, gibibytes(data + all), 1, 1);
    }
  }
  report.notes = {
      "The text gives two values, up to 18.5 GB and 44.3 GB. Counted by the paper's rules ResNet152 has more "
      "and InceptionV4 less; the layer counts it names (567 and 515) do not come out either, so its "
      "networks are probably not quite the published ones. The other bars are drawn without numbers."};
  report.series.push_back(std::move(series));
  return report;
}

Report figure8(Workbench& bench) {
  Report report;
  report.setting = "batches of Figure 2; time of both passes modelled for a k40c with its fastest algorithms";
  const DeviceModel cost(find_device("k40c").rates());
  Series time{"figure8a_time", {"network"}, {}, true}, memory{"figure8b_memory", {"network"}, {}, true};
  for (const std::string_view type : kTypes) {
    time.columns.emplace_back(type);
    memory.columns.emplace_back(type);
  }
  double cheap_time = 0, cheap_memory = 0, cheap_forward = 0, cheap_of_plain = 0, convolution = 1, small_memory = 0;
  const auto networks = paper_networks();
  for (const PaperNetwork& network : networks) {
    const Shares shares = shares_of(bench.step({.model = network.model, .batch = paper_batch(network.name)}), cost);
    std::vector<std::string> time_row{std::string(network.name)}, memory_row{std::string(network.name)};
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
      time_row.push_back(fmt::format("{:.1f}", 100 * shares.time[i]));
      memory_row.push_back(fmt::format("{:.1f}", 100 * shares.memory[i]));
    }
    time.rows.push_back(std::move(time_row));
    memory.rows.push_back(std::move(memory_row));
    const double each = 1.0 / static_cast<double>(networks.size());
    cheap_time += each * Shares::cheap(shares.time);
    cheap_memory += each * Shares::cheap(shares.memory);
    cheap_of_plain += each * Shares::cheap(shares.memory) / (1 - shares.memory.back());
    cheap_forward += each * shares.cheap_forward;
    convolution = std::min(convolution, shares.time[0]);
    small_memory = std::max(small_memory, shares.memory[1] + shares.memory[6] + shares.memory[7]);
  }
  report.remarked("POOL, ACT, BN, LRN: memory, average", "%", "over 50", 100 * cheap_memory, 1, 2);
  report.remarked("the same without joins, forks, concatenations", "%", "over 50", 100 * cheap_of_plain, 1, 2);
  report.remarked("POOL, ACT, BN, LRN: time, average", "%", "20", 100 * cheap_time, 1, 1);
  report.remarked("the same, forward only", "%", "under 10", 100 * cheap_forward, 1, 1);
  report.remarked("CONV: time, least of all networks", "%", "over 50", 100 * convolution, 1, 1);
  report.remarked("FC, DROPOUT, SOFTMAX: memory, most", "%", "under 1", 100 * small_memory, 1, 3);
  report.notes = {"The paper's bars carry no numbers; these are the remarks of its text (sections 3.3.1, 3.4 and 3.5).",
                  "Counted with the outputs of forks, joins and concatenations, which hold much of the nonlinear "
                  "networks, the share "
                  "is smaller; the paper does not list these among its types.",
                  "AlexNet's, where the fully connected layers are large; in the others it is 0.1% or less."};
  report.series.push_back(std::move(time));
  report.series.push_back(std::move(memory));
  return report;
}

}  // namespace tide::reproduce::superneurons
