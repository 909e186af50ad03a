// The experiments of X. Chen, D. Chen and X. Hu, "moDNN: Memory Optimal DNN Training on GPUs" (2018).
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/check_together.h"
#include "plan/together.h"
#include "report/reproduce/experiment.h"
#include "report/reproduce/workbench.h"

namespace tide::reproduce {
namespace {

struct Trained {
  std::string_view name, model;
  std::int64_t batch;
};
constexpr std::array<Trained, 5> kNetworks{{{"VGG-16", "vgg16", 256},
                                            {"VGG-19", "vgg19", 256},
                                            {"VGG-101", "vgg101", 128},
                                            {"ResNet-34", "resnet34", 256},
                                            {"FCN", "fcn", 128}}};
constexpr std::int64_t kDeviceMemory = 12LL << 30;

Setting setting_of(const Trained& network, std::string_view policy, std::optional<Bytes> memory = {}) {
  Setting setting{
      .model = network.model, .batch = network.batch, .policy = policy, .device = "k40m", .rules = Rules::minimal};
  setting.options.memory[Tier::device] = memory;
  setting.options.batch = SubBatches{.allowed = Numerics::changed};
  return setting;
}

double ideal_of(Workbench& bench, const Trained& network) {
  const Setting setting = setting_of(network, "modnn");
  return ideal_seconds(bench.step(setting), DeviceModel(find_device(setting.device).rates()));
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Bytes moved(const Planned& planned) { return planned.summary.offloaded_bytes + planned.summary.prefetched_bytes; }
double more_percent(double seconds, double ideal) { return 100 * (seconds / ideal - 1); }

// The paper's classes of tensors: X, Y, their gradients, W and its gradients.
bool is_resident(TensorClass kind) { return kind == TensorClass::parameter || kind == TensorClass::parameter_gradient; }
bool is_counted(TensorClass kind) { return is_resident(kind) || is_data(kind) || kind == TensorClass::input; }

// All of them at once.
Bytes ideal_bytes(const Step& step) {
  Bytes total;
  for (const Storage& storage : step.storages)
    if (is_counted(storage.tensor_class)) total += storage.bytes;
  return total;
}

// Equation 2 over them: W with its gradients, and the largest inputs and outputs of one task.
Bytes floor_bytes(const Step& round) {
  Bytes resident, largest;
  for (const Storage& storage : round.storages)
    if (is_resident(storage.tensor_class)) resident += storage.bytes;
  for (std::size_t t = 0; t < round.ordered_tasks; ++t) {
    std::set<StorageId> storages;
    for (const Operand& operand : round.operands_of(TaskId(t))) storages.insert(round.tensor(operand.tensor).storage);
    Bytes bytes;
    for (const StorageId id : storages)
      if (is_counted(round.storage(id).tensor_class) && !is_resident(round.storage(id).tensor_class))
        bytes += round.storage(id).bytes;
    largest = std::max(largest, bytes);
  }
  return resident + largest;
}

// One network of Figure 6, in GB.
struct MemoryOf {
  double ideal, bound;        // the paper's classes of tensors
  double all, merged, least;  // all classes: as they are, in place, and the least that will do
};

MemoryOf memory_of(Workbench& bench, const Trained& network) {
  Setting one = setting_of(network, "modnn");
  one.batch = 1;
  one.part = Part::later_round;
  return {.ideal = gigabytes(ideal_bytes(bench.step(setting_of(network, "modnn")))),
          .bound = gigabytes(floor_bytes(bench.step(one))),
          .all = gigabytes(bench.plan(setting_of(network, "baseline")).result.floor[Tier::device]),
          .merged = gigabytes(bench.plan(setting_of(network, "inplace")).result.floor[Tier::device]),
          .least = gigabytes(bench.plan(setting_of(network, "modnn")).result.floor[Tier::device])};
}

double million_parameters(const Network& network) {
  double sum = 0;
  for (const Parameter& parameter : network.parameters) sum += static_cast<double>(parameter.shape.elements()) / 1e6;
  return sum;
}

std::vector<std::string> figure6_notes(double parameters) {
  return {
      "The figure's bars carry no numbers; 50 times on average (up to, in the abstract), 100 GB and 1.4 GB are in the "
      "text.",
      "The paper does not say whether ReLU has an output of its own. With it, twice what it prints; in place, close to "
      "it.",
      fmt::format("The paper does not say which layers VGG-101 has; ours adds convolutions to each stage of VGG-19 and "
                  "has {:.0f} "
                  "million parameters, where 1.4 GB leaves room for at most 175 million.",
                  parameters)};
}

Report figure6(Workbench& bench) {
  Report report;
  report.setting =
      "memory over the paper's classes of tensors on both sides: input batch, layer outputs, their gradients, weights "
      "and weight "
      "gradients (no optimizer state, saved state or workspaces), every tensor with memory of its own. Ideal: all at "
      "once, at the "
      "batch of the paper. Lower bound: weights and their gradients, and the largest task at one sample (equation 2). "
      "GB is 10^9 bytes";
  Series series{"figure6",
                {"network", "batch", "ideal GB", "bound GB", "times", "all classes GB", "bound GB", "times",
                 "in place GB", "times"},
                {},
                true};
  std::vector<double> times, all_times, merged_times;
  MemoryOf deepest{};
  double parameters = 0;
  for (const Trained& network : kNetworks) {
    const MemoryOf memory = memory_of(bench, network);
    times.push_back(memory.ideal / memory.bound);
    all_times.push_back(memory.all / memory.least);
    merged_times.push_back(memory.merged / memory.least);
    if (network.name == "VGG-101") {
      deepest = memory;
      parameters = million_parameters(*bench.network(network.model));
    }
    series.rows.push_back({std::string(network.name), fmt::format("{}", network.batch),
                           fmt::format("{:.1f}", memory.ideal), fmt::format("{:.2f}", memory.bound),
                           fmt::format("{:.0f}", times.back()), fmt::format("{:.1f}", memory.all),
                           fmt::format("{:.2f}", memory.least), fmt::format("{:.0f}", all_times.back()),
                           fmt::format("{:.1f}", memory.merged), fmt::format("{:.0f}", merged_times.back())});
  }
  report.modelled("ideal over lower bound, on average", "times", 50, mean(times), 0, 1);
  report.only_ours("the same over all classes, momentum included", "times", mean(all_times), 0, 1);
  report.only_ours("the same, results in place in the ideal too", "times", mean(merged_times), 0, 1);
  report.remarked("VGG-101, ideal", "GB", "nearly 100", deepest.ideal, 0, 2);
  report.remarked("VGG-101, ideal, in place, all classes", "GB", "nearly 100", deepest.merged, 0, 2);
  report.modelled("VGG-101, lower bound", "GB", 1.4, deepest.bound, 2, 3);
  report.notes = figure6_notes(parameters);
  report.series.push_back(std::move(series));
  return report;
}

// vDNN with the fastest algorithms that fit: workspaces up to the largest limit with which there is a plan.
Planned plan_vdnn(Workbench& bench, const Trained& network, std::string_view policy, Bytes memory) {
  Setting setting = setting_of(network, policy, memory);
  setting.options.batch = WholeBatch{};
  Planned best = bench.plan(setting);
  if (best.fits()) return best;
  std::set<Bytes> sizes;
  for (const auto& algorithms : bench.step(setting).algorithm_sets)
    for (const Algorithm& algorithm : algorithms) sizes.insert(algorithm.workspace);
  const std::vector<Bytes> limits(sizes.begin(), sizes.end());
  std::size_t low = 0, high = limits.size();  // the largest limit that fits is below `high`
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    setting.largest_workspace = limits[middle];
    Planned planned = bench.plan(setting);
    if (planned.fits()) {
      best = std::move(planned);
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return best;
}

// One network in 12 GB.
struct Race {
  double ideal;
  Planned modnn, all, conv;
};

std::vector<std::string> figure7_row(const Trained& network, const Race& race) {
  std::vector<std::string> row{std::string(network.name), fmt::format("{:.2f}", race.ideal)};
  for (const Planned* const planned : {&race.modnn, &race.all, &race.conv}) {
    row.push_back(planned->fits() ? fmt::format("{:.2f}", planned->seconds) : "does not fit");
    row.push_back(planned->fits() ? fmt::format("{:.1f}", more_percent(planned->seconds, race.ideal)) : "");
    if (planned == &race.modnn)
      row.push_back(planned->fits() ? fmt::format("{}", sub_batch_of(*planned->result.plan)) : "");
    row.push_back(planned->fits() ? fmt::format("{:.1f}", gigabytes(moved(*planned))) : "");
  }
  return row;
}

// What the networks of Figure 7 come to.
struct Losses {
  std::vector<double> modnn, all, conv;             // percent beyond the ideal
  std::vector<double> share_of_all, share_of_conv;  // of vDNN's bytes that moDNN moves
  Bytes ours, theirs;

  void add(const Race& race) {
    modnn.push_back(more_percent(race.modnn.seconds, race.ideal));
    all.push_back(more_percent(race.all.seconds, race.ideal));
    conv.push_back(more_percent(race.conv.seconds, race.ideal));
    const auto share = [&](const Planned& other) {
      return static_cast<double>(moved(race.modnn).count()) / static_cast<double>(moved(other).count());
    };
    share_of_all.push_back(share(race.all));
    share_of_conv.push_back(share(race.conv));
    ours += moved(race.modnn);
    theirs += moved(race.all);
  }
  void report_to(Report& report) const {
    report.modelled("moDNN, loss on average", "%", 8, mean(modnn), 1, 1);
    report.modelled("vDNN, loss on average", "%", 40, mean(all), 1, 2);
    report.only_ours("vDNN of convolutions only, loss on average", "%", mean(conv), 1, 2);
    report.modelled("vDNN's bytes over moDNN's, by the mean share", "times", 5, 1 / mean(share_of_all), 1, 3);
    report.only_ours("the same, all networks added up", "times",
                     static_cast<double>(theirs.count()) / static_cast<double>(ours.count()), 1, 3);
    report.only_ours("the same against convolutions only, mean share", "times", 1 / mean(share_of_conv), 1, 3);
  }
};

Report figure7(Workbench& bench) {
  Report report;
  report.setting =
      "a k40m with 12 GiB, modelled; ideal: the tasks' times at the whole batch with their fastest algorithms. vDNN "
      "moves the inputs "
      "of all layers, each copy in step with one layer, with the largest workspaces that fit. ResNet-34 has batch "
      "norms, whose "
      "statistics sub-batches change; that is allowed here. GB is 10^9 bytes, both ways";
  Series series{"figure7",
                {"network", "ideal s", "moDNN s", "loss %", "sub-batch", "moved GB", "vDNN s", "loss %", "moved GB",
                 "conv s", "loss %", "moved GB"},
                {},
                true};
  Losses losses;
  for (const Trained& network : kNetworks) {
    const Bytes memory(kDeviceMemory);
    const Race race{.ideal = ideal_of(bench, network),
                    .modnn = bench.plan(setting_of(network, "modnn", memory)),
                    .all = plan_vdnn(bench, network, "vdnn-all", memory),
                    .conv = plan_vdnn(bench, network, "vdnn-conv", memory)};
    series.rows.push_back(figure7_row(network, race));
    losses.add(race);
  }
  losses.report_to(report);
  report.notes = {
      "Bars without numbers; 8%, 40% and 5 times are in the text. Loss is time beyond the ideal.",
      "The paper's vDNN is measured and carries what a real one costs in synchronization; ours loses only what waiting "
      "for the link "
      "costs. With copies of the inputs of convolutions alone, which have the time to hide them, it loses little.",
      "Some of the five move nothing at all, so a mean of ratios would be infinite: the mean of moDNN's share of "
      "vDNN's bytes "
      "is turned over instead. What VGG-101 moves is what its whole batch exceeds 12 GiB by: that costs no time, so it "
      "is not cut. VGG-19 has two plans "
      "half a percent apart, the whole batch with copies and two halves without; that a copy counts for a twentieth of "
      "its time "
      "decides for the halves, and the mean hangs on it."};
  report.series.push_back(std::move(series));
  return report;
}

// The three at one budget.
struct Contest {
  Planned modnn, vdnn, plus;
};

Contest contest_at(Workbench& bench, const Trained& network, Bytes memory) {
  Planned vdnn = plan_vdnn(bench, network, "vdnn-conv", memory);
  Planned all = plan_vdnn(bench, network, "vdnn-all", memory);
  if (all.fits() && (!vdnn.fits() || all.seconds < vdnn.seconds)) vdnn = std::move(all);
  return {.modnn = bench.plan(setting_of(network, "modnn", memory)),
          .vdnn = std::move(vdnn),
          .plus = bench.plan(setting_of(network, "vdnn+", memory))};
}

std::vector<std::string> figure8_row(const Trained& network, Bytes memory, const Contest& contest) {
  const auto seconds = [](const Planned& planned) {
    return planned.fits() ? fmt::format("{:.2f}", planned.seconds) : "-";
  };
  const auto samples = [](const Planned& planned) {
    return planned.fits() ? fmt::format("{}", sub_batch_of(*planned.result.plan)) : "-";
  };
  return {std::string(network.name), fmt::format("{:.2f}", gigabytes(memory)),
          seconds(contest.modnn),    samples(contest.modnn),
          seconds(contest.vdnn),     seconds(contest.plus),
          samples(contest.plus)};
}

// What all budgets of Figure 8 come to.
struct Tally {
  int points = 0, modnn = 0, vdnn = 0, plus = 0, slower = 0;
  double worst = 0;

  void add(const Contest& contest) {
    ++points;
    modnn += contest.modnn.fits() ? 1 : 0;
    vdnn += contest.vdnn.fits() ? 1 : 0;
    plus += contest.plus.fits() ? 1 : 0;
    double other = contest.modnn.seconds;
    for (const Planned* const planned : {&contest.vdnn, &contest.plus})
      if (planned->fits()) other = std::min(other, planned->seconds);
    slower += other < contest.modnn.seconds ? 1 : 0;
    worst = std::max(worst, more_percent(contest.modnn.seconds, other));
  }
  void report_to(Report& report) const {
    const std::string of_all = fmt::format("of {}", points);
    report.remarked("budgets that moDNN fits into", of_all, "all", modnn, 0);
    report.only_ours("budgets that vDNN fits into", of_all, vdnn, 0);
    report.only_ours("budgets that vDNN+ fits into", of_all, plus, 0);
    report.remarked("budgets at which moDNN is slower than either", of_all, "none", slower, 0, 1);
    report.remarked("the most by which it is slower", "%", "never", worst, 1, 1);
  }
};

Report figure8(Workbench& bench) {
  Report report;
  report.setting =
      "a k40m, modelled; budgets from the lower bound (with momentum) to what needs nothing moved, in equal ratios. "
      "Seconds of a step and "
      "the sub-batch; vDNN is the faster of all layers and convolutions only, with the largest workspaces that fit; "
      "vDNN+ has "
      "moDNN's sub-batches. Batch norm as in Figure 7";
  Series series{
      "figure8", {"network", "memory GB", "moDNN s", "sub-batch", "vDNN s", "vDNN+ s", "sub-batch"}, {}, true};
  constexpr int kPoints = 8;
  Tally tally;
  for (const Trained& network : kNetworks) {
    const double low = static_cast<double>(bench.plan(setting_of(network, "modnn")).result.floor[Tier::device].count());
    const double high =
        static_cast<double>(bench.plan(setting_of(network, "liveness")).summary.peak[Tier::device].count());
    for (int point = 0; point <= kPoints; ++point) {
      const double exact = low * std::pow(high / low, static_cast<double>(point) / kPoints);
      const Bytes memory(static_cast<std::int64_t>(std::llround(exact)));
      const Contest contest = contest_at(bench, network, memory);
      series.rows.push_back(figure8_row(network, memory, contest));
      tally.add(contest);
    }
  }
  tally.report_to(report);
  report.notes = {
      "The curves carry no numbers; the text says that moDNN is always better than both. Where vDNN just fits, it has "
      "all of the step "
      "packed at once, while moDNN's memory list may find a place a few bytes too short and bring something in twice."};
  report.series.push_back(std::move(series));
  return report;
}

// One network of Figure 9: seconds of the whole batch.
struct TwoDevices {
  double ideal = 0, one = 0, two = 0;
  double summing = 0;  // of the two: seconds of its sums
};

TwoDevices on_two_devices(Workbench& bench, const Trained& network) {
  const Bytes memory(kDeviceMemory);
  const Planned one = bench.plan(setting_of(network, "modnn", memory));
  Setting half = setting_of(network, "modnn", memory);
  half.batch = network.batch / 2;
  half.ranks.count = 2;
  const Planned planned = bench.plan(half);
  TwoDevices result{.ideal = ideal_of(bench, network), .one = one.seconds};
  if (!planned.fits()) return result;
  const DeviceSheet& sheet = find_device(half.device);
  const DeviceModel cost(sheet.rates());
  const CostModel* const times = &cost;
  const std::array<const Plan*, 2> plans{&*planned.result.plan, &*planned.result.plan};
  require_valid_together(plans);
  const std::vector<Timeline> timelines = simulate_together(plans, {&times, 1}, default_topology(2, sheet));
  result.two = seconds_of(timelines);
  std::size_t next = 0;
  for (const Phase& phase : plans[0]->phases)
    for (std::int32_t round = 0; round < phase.repeat; ++round)
      for (const Op& op : phase.ops) {
        const Span& span = timelines[0].spans[next++];
        if (op.lane == Lane::reduce) result.summing += span.end - span.start;
      }
  return result;
}

Report figure9(Workbench& bench) {
  Report report;
  report.setting =
      "two k40m at one switch with 12 GiB each, modelled: each has half of the batch of 256, gradients go around a "
      "ring. Speedup over "
      "moDNN on one device with the whole batch, and over one device's ideal";
  Series series{"figure9", {"network", "ideal s", "one s", "two s", "speedup", "of ideal", "sums s"}, {}, true};
  std::vector<double> speedups, over_ideal;
  for (const Trained& network : std::span(kNetworks).first(2)) {
    const TwoDevices devices = on_two_devices(bench, network);
    speedups.push_back(devices.one / devices.two);
    over_ideal.push_back(devices.ideal / devices.two);
    series.rows.push_back({std::string(network.name), fmt::format("{:.2f}", devices.ideal),
                           fmt::format("{:.2f}", devices.one), fmt::format("{:.2f}", devices.two),
                           fmt::format("{:.2f}", speedups.back()), fmt::format("{:.2f}", over_ideal.back()),
                           fmt::format("{:.3f}", devices.summing)});
  }
  report.modelled("over moDNN on one device, on average", "times", 1.84, mean(speedups), 2, 1);
  report.modelled("over one device's ideal, on average", "times", 1.5, mean(over_ideal), 2, 1);
  report.notes = {
      "The bars carry no numbers; 1.84 and 1.5 are in the text. The paper adds gradients up as the last thing of a "
      "step and names "
      "two bottlenecks, copies that share the bus and these sums. Ours are summed bucket by bucket while the backward "
      "pass goes on, or "
      "behind the last round where the batch is cut; and half the batch has less to move."};
  report.series.push_back(std::move(series));
  return report;
}

}  // namespace

std::span<const Experiment> modnn_experiments() {
  static constexpr std::array<Experiment, 4> kExperiments{{
      {"figure6", "Memory at the lower bound", figure6},
      {"figure7", "Time and moved bytes in 12 GB", figure7},
      {"figure8", "Time by memory budget", figure8},
      {"figure9", "Two devices", figure9},
  }};
  return kExperiments;
}

}  // namespace tide::reproduce
