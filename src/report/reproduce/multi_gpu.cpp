// The experiments of Y. Kim, J. Lee, J.-S. Kim, H. Je and H. Roh, "Efficient Multi-GPU Memory Management for Deep
// Learning Acceleration" (2018): swapping on several devices that share links to their host.
#include <algorithm>
#include <array>
#include <cmath>

#include "cost/device_model.h"
#include "plan/checker.h"
#include "plan/summary.h"
#include "planner/ranks/ranks.h"
#include "planner/ranks/triggers.h"
#include "planner/vdnn/vdnn.h"
#include "report/reproduce/experiment.h"
#include "report/reproduce/workbench.h"

namespace tide::reproduce {
namespace {

constexpr std::int64_t kGrowth = 10;  // the paper's tables have batches in steps of ten: its C

// TensorFlow sums each variable's gradient by itself and needs no more room for it than one device alone.
RankOptions one_by_one(std::int64_t ranks) { return {.count = ranks, .bucket = Bytes(1), .late_updates = ranks == 1}; }

// A step on several devices of one kind, and its plans.
class Bench {
 public:
  Bench(Workbench& bench, std::string_view model, std::string_view device, std::int64_t batch, Topology topology)
      : sheet_(find_device(device)), cost_(sheet_.rates()), topology_(std::move(topology)), batch_(batch) {
    Setting setting{.model = model, .batch = batch, .device = device, .rules = Rules::minimal};
    setting.ranks = one_by_one(static_cast<std::int64_t>(device_count(topology_)));
    step_ = bench.step(setting);
    request_ = {.step = &step_,
                .plan =
                    [this](const Policy& policy, const PlannerOptions& options, const CostModel& cost) {
                      PlanningContext context(options);
                      context.floor_is_known = true;
                      return make_unproved_plan(policy, step_, cost, context);
                    },
                .cost = &cost_,
                .topology = &topology_,
                .road = ReduceRoad::cpu};
    options_.parameters = Parameters::device;
    options_.memory[Tier::device] = sheet_.memory();
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  [[nodiscard]] std::int32_t layers() const { return find_policy("vdnn-conv").swappable(step_, options_); }
  [[nodiscard]] RankPlans unswapped() const { return proved(plan_ranks(request_, sharing(), options_, Stagger::none)); }
  [[nodiscard]] RankPlans original() const { return proved(plan_ranks(request_, vdnn(), options_, Stagger::none)); }
  // Every layer on one device of each group (or, beyond the group, on every `interval`th), swap-ins at their best time.
  [[nodiscard]] RankPlans optimized(std::int32_t interval) const {
    return proved(plan_staggered(request_, vdnn(), options_, layers() / interval, true));
  }
  [[nodiscard]] RankPlans staggered(std::int32_t interval) const {
    return proved(plan_staggered(request_, vdnn(), options_, layers() / interval, false));
  }
  [[nodiscard]] RankPlans balanced() const { return proved(plan_balanced(request_, vdnn(), options_)); }
  [[nodiscard]] RankPlans ours() const { return proved(plan_ranks(request_, vdnn(), options_, Stagger::automatic)); }
  // With late triggers, all layers swapped.
  [[nodiscard]] bool fits_late() const {
    PlannerOptions late = options_;
    late.policy.set<TriggerOptions>().early.emplace();
    return request_.plan(vdnn(), late, cost_).plan.has_value();
  }
  [[nodiscard]] double images(const RankPlans& set) const {
    return set.fits() ? static_cast<double>(batch_) / set.seconds : 0;
  }
  [[nodiscard]] const CostModel& cost() const { return cost_; }
  // Of all sums of a step, while nobody else uses the links.
  [[nodiscard]] double summing_seconds() const {
    const RankPlans set = unswapped();
    double total = 0;
    if (!set.fits()) return total;
    const Phase& phase = set.of.front()->plan->phases.front();
    for (const Span& span : set.timelines.front().spans)
      if (phase.ops[static_cast<std::size_t>(span.op)].lane == Lane::reduce) total += span.end - span.start;
    return total;
  }

 private:
  static const Policy& sharing() { return find_policy("sharing"); }
  static const Policy& vdnn() { return find_policy("vdnn-conv"); }
  // Searches leave the checker out; what is shown went through it.
  static RankPlans proved(RankPlans set) {
    if (set.fits())
      for (const auto& result : set.of) require_valid(*result->plan);
    return set;
  }

  const DeviceSheet& sheet_;
  DeviceModel cost_;
  Topology topology_;
  std::int64_t batch_;
  Step step_;
  RankRequest request_;
  PlannerOptions options_;
};

// So many P100 of the paper's server: at one switch, or as few as can be at each.
Topology p100_at(std::size_t switches, std::size_t per_switch) {
  Topology topology = find_topology("4xp100-pcie");
  HostSlot& host = topology.hosts.front();
  host.switches.resize(switches, host.switches.front());
  for (SwitchSlot& each : host.switches) each.devices.resize(per_switch, each.devices.front());
  topology.name = fmt::format("{} at {} switch{}", switches * per_switch, switches, switches == 1 ? "" : "es");
  return topology;
}

// The largest batch in steps of ten.
template <typename Fits>
std::int64_t largest_by_ten(const Fits& fits) {
  return largest_late_batch(fits, kGrowth, 1000);
}

std::int64_t unswapped_limit(Workbench& bench, std::string_view model, std::string_view device, std::int64_t ranks) {
  Setting setting{.model = model, .policy = "sharing", .device = device, .rules = Rules::minimal};
  setting.ranks = one_by_one(ranks);
  setting.options.memory[Tier::device] = find_device(device).memory();
  return bench.largest_batch(setting);
}

std::int64_t late_limit(Workbench& bench, std::string_view model, std::string_view device, const Topology& topology) {
  return largest_by_ten([&](std::int64_t batch) { return Bench(bench, model, device, batch, topology).fits_late(); });
}

Report table1(Workbench& bench) {
  Report report;
  report.setting =
      "one Titan Xp, 12 GiB, modelled; Non-Swap is policy sharing, swapping is vDNN of the inputs of convolutions with "
      "swap-ins at "
      "the best time (triggers); each at its largest batch, swapping in steps of ten";
  struct Row {
    std::string_view name, model;
    double batch, swapped, images, swapped_images;
  };
  constexpr std::array<Row, 2> kRows{
      {{"VGG-16", "vgg16", 80, 128, 62.95, 73.93}, {"Inception-v3", "inception-v3", 114, 150, 62.67, 63.34}}};
  const Topology one = default_topology(1, find_device("titan-xp"));
  for (const Row& row : kRows) {
    const std::string name(row.name);
    const std::int64_t batch = unswapped_limit(bench, row.model, "titan-xp", 1);
    const std::int64_t swapped = late_limit(bench, row.model, "titan-xp", one);
    const Bench small(bench, row.model, "titan-xp", batch, one), large(bench, row.model, "titan-xp", swapped, one);
    report.modelled(name + ", Non-Swap", "batch", row.batch, static_cast<double>(batch), 0);
    report.modelled(name + ", swapping", "batch", row.swapped, static_cast<double>(swapped), 0, 1);
    report.modelled(name + ", gain in batch", "%", 100 * (row.swapped / row.batch - 1),
                    100 * (static_cast<double>(swapped) / static_cast<double>(batch) - 1), 0);
    report.modelled(name + ", Non-Swap", "images/s", row.images, small.images(small.unswapped()), 2, 2);
    report.modelled(name + ", swapping", "images/s", row.swapped_images, large.images(large.optimized(1)), 2, 2);
  }
  report.notes = {
      "Beyond what sharing does, our swapping plans are packed ahead, which a runtime that allocates as it goes cannot "
      "do; with the "
      "fastest algorithms, what bounds them is the largest task with its workspace, which no swapping makes smaller.",
      "The paper's speeds include its input pipeline and TensorFlow's own time; the model has neither, and its devices "
      "do not get "
      "faster by a larger batch from this size on."};
  return report;
}

struct PaperRow {
  std::int64_t batch;
  double unswapped, original, optimized;  // images per second; 0: out of memory
};

std::string images_text(double images) { return images > 0 ? fmt::format("{:.2f}", images) : "out of memory"; }

std::vector<std::string> row_text(const PaperRow& row, const Bench& bench, std::string_view placed,
                                  const std::array<RankPlans, 6>& sets) {
  std::vector<std::string> text{std::string(placed), fmt::format("{}", row.batch), images_text(row.unswapped),
                                images_text(row.original), images_text(row.optimized)};
  for (const RankPlans& set : sets) text.push_back(images_text(bench.images(set)));
  text.push_back(sets.back().way);
  return text;
}

const std::vector<std::string> kTableColumns{"devices",   "batch",          "paper: none", "original",
                                             "optimized", "ours: Non-Swap", "original",    "optimized",
                                             "by bytes",  "every fourth",   "auto",        "auto's way"};

// One placement of the devices of a table.
struct Placement {
  Topology topology;
  double least_gain = HUGE_VAL, most_gain = 0, least_of_none = HUGE_VAL, original_of_none = HUGE_VAL;
  double fourth_of_none = HUGE_VAL, balanced_of_none = HUGE_VAL;
};

void run_placement(Workbench& bench, std::span<const PaperRow> rows, Placement& placement, Series& series) {
  for (const PaperRow& row : rows) {
    const Bench at(bench, "vgg16", "p100", row.batch, placement.topology);
    const std::array<RankPlans, 6> sets{at.unswapped(), at.original(),   at.optimized(2),
                                        at.balanced(),  at.optimized(4), at.ours()};
    series.rows.push_back(row_text(row, at, placement.topology.name, sets));
    const double gain = 100 * (at.images(sets[2]) / at.images(sets[1]) - 1);
    placement.least_gain = std::min(placement.least_gain, gain);
    placement.most_gain = std::max(placement.most_gain, gain);
    if (!sets[0].fits()) continue;
    placement.least_of_none = std::min(placement.least_of_none, 100 * at.images(sets[2]) / at.images(sets[0]));
    placement.fourth_of_none = std::min(placement.fourth_of_none, 100 * at.images(sets[4]) / at.images(sets[0]));
    placement.balanced_of_none = std::min(placement.balanced_of_none, 100 * at.images(sets[3]) / at.images(sets[0]));
    placement.original_of_none = std::min(placement.original_of_none, 100 * at.images(sets[1]) / at.images(sets[0]));
  }
}

// What x = 2 loses, and what sharing layers out by their bytes gains.
std::string uneven_text(const Bench& bench) {
  const auto sent = [](const RankPlans& set, std::size_t device) {
    return gibibytes(summarize(*set.of[device]->plan).offloaded_bytes);
  };
  const RankPlans turns = bench.optimized(2), bytes = bench.balanced();
  return fmt::format(
      " With x = 2 the largest layers fall to the same device: at batch 110, of the two at a switch one sends {:.1f} "
      "GiB out and back, the other {:.1f}, while the sums use the same link. All wait for the slower one at every "
      "sum; at two switches, where it has a link of its own, it loses next to nothing. Shared out by their bytes, a "
      "staggering of our own (plan_balanced), it is {:.1f} and {:.1f} GiB. Where a switch has one device that is all "
      "layers.",
      std::max(sent(turns, 0), sent(turns, 1)), std::min(sent(turns, 0), sent(turns, 1)), sent(bytes, 0),
      sent(bytes, 1));
}

std::vector<std::string> table_notes(Workbench& bench) {
  const Bench two(bench, "vgg16", "p100", 110, p100_at(1, 2)), four(bench, "vgg16", "p100", 110, p100_at(2, 2));
  Setting setting{.model = "vgg16", .batch = 120, .policy = "sharing", .device = "p100", .rules = Rules::minimal};
  setting.ranks = one_by_one(2);
  const double need = gibibytes(bench.plan(setting).result.floor[Tier::device]);
  const double sum_two = 1e3 * two.summing_seconds(), sum_four = 1e3 * four.summing_seconds();
  return {
      "Optimized is the paper's steps 1 to 3 with x = 2, as its Figure 3 draws it: each layer is swapped by one of the "
      "two devices of "
      "a switch; and its triggers, timed with all devices together, where a later one that turns out faster is taken "
      "(the paper only asks for no "
      "delay). It does not say which b it took; with x = 4 (every "
      "fourth) less "
      "is swapped. By our packing no layer has to leave at these batches, which is what auto finds." +
          uneven_text(four),
      fmt::format(
          "The model does not show that four devices fit less without swapping: a plan takes the same memory on "
          "any number of ranks. At batch 120 that is {:.2f} of 16 GiB; {:.0f} MiB are left, less than one "
          "gradient of a fully connected layer, and with the default buckets it does not fit on two either. A "
          "guess, not simulated: a runtime that allocates as it goes keeps a gradient until its sum is back, "
          "and the sums of a step take {:.0f} ms on two devices and {:.0f} ms on four.",
          need, 1024 * (16 - need), sum_two, sum_four),
      "The model's P100 is faster than the paper's, which has TensorFlow's own time and input in its figures. Shares "
      "and "
      "gains are what can be compared."};
}

void report_placement(Report& report, const Placement& placement, std::string paper_gain, double paper_share,
                      double paper_original) {
  const std::string name = placement.topology.name;
  report.modelled(name + ": original of Non-Swap", "%", paper_original, placement.original_of_none, 1);
  report.modelled(name + ": optimized of Non-Swap", "%", paper_share, placement.least_of_none, 1, 1);
  if (largest_group(placement.topology) > 1)
    report.only_ours(name + ": layers shared out by bytes, of Non-Swap", "%", placement.balanced_of_none, 1, 1);
  report.only_ours(name + ": optimized with x = 4, of Non-Swap", "%", placement.fourth_of_none, 1, 1);
  report.remarked(name + ": gain of optimized over original, least", "%", paper_gain, placement.least_gain, 1, 1);
  report.remarked(name + ": the same, most", "%", std::move(paper_gain), placement.most_gain, 1, 1);
}

std::string table_setting(std::string_view devices) {
  return fmt::format(
      "VGG16 on {}, 16 GiB, modelled; gradients of each variable are summed on the CPU; images per second and device. "
      "Non-Swap is policy sharing, original is vdnn-conv on every device",
      devices);
}

void report_limits(Workbench& bench, Report& report, const Topology& topology, double unswapped, double swapped) {
  const auto ranks = static_cast<std::int64_t>(device_count(topology));
  const auto ours = static_cast<double>(unswapped_limit(bench, "vgg16", "p100", ranks));
  const auto late = static_cast<double>(late_limit(bench, "vgg16", "p100", topology));
  report.modelled("largest batch, Non-Swap", "images", unswapped, ours, 0, 2);
  report.modelled("largest batch, swapping, in steps of ten", "images", swapped, late, 0);
  report.modelled("gain in batch", "%", 100 * (swapped / unswapped - 1), 100 * (late / ours - 1), 0);
}

Report table2(Workbench& bench) {
  Report report;
  report.setting = table_setting("two P100") + ". The paper does not say at which switches: both ways";
  constexpr std::array<PaperRow, 4> kRows{
      {{120, 83.56, 56.33, 81.14}, {130, 0, 56.66, 84.14}, {140, 0, 58.86, 86.65}, {150, 0, 60.12, 88.15}}};
  Series series{"table2", kTableColumns, {}, true};
  for (const Topology& topology : {p100_at(1, 2), p100_at(2, 1)}) {
    Placement placement{.topology = topology};
    run_placement(bench, kRows, placement, series);
    report_placement(report, placement, "44 to 48", 100 * 81.14 / 83.56, 100 * 56.33 / 83.56);
  }
  report_limits(bench, report, p100_at(1, 2), 120, 150);
  report.notes = table_notes(bench);
  report.series.push_back(std::move(series));
  return report;
}

Report table3(Workbench& bench) {
  Report report;
  report.setting = table_setting("four P100, two at each of two switches");
  constexpr std::array<PaperRow, 4> kRows{
      {{110, 66.53, 51.06, 68.31}, {120, 0, 52.49, 70.11}, {130, 0, 53.09, 70.24}, {140, 0, 54.86, 70.36}}};
  Series series{"table3", kTableColumns, {}, true};
  Placement placement{.topology = p100_at(2, 2)};
  run_placement(bench, kRows, placement, series);
  report_placement(report, placement, "28 to 34", 100 * 68.31 / 66.53, 100 * 51.06 / 66.53);
  report_limits(bench, report, p100_at(2, 2), 110, 140);
  report.notes = table_notes(bench);
  report.series.push_back(std::move(series));
  return report;
}

// One lane of one device as a line of text: a letter for what is busy, by time.
std::string strip(const Plan& plan, const Timeline& timeline, Lane lane, double seconds) {
  constexpr std::size_t kWidth = 80;
  std::string text(kWidth, '.');
  const Phase& phase = plan.phases.front();
  for (const Span& span : timeline.spans) {
    const Op& op = phase.ops[static_cast<std::size_t>(span.op)];
    if (op.lane != lane || !(span.end > span.start)) continue;
    const bool backward = op.is_run() && phase.step->task(op.run().task).kind != TaskKind::forward;
    const char mark = op.is_copy()           ? (lane == Lane::out ? 'o' : 'i')
                      : lane == Lane::reduce ? 's'
                      : backward             ? 'B'
                                             : 'F';
    const auto at = [&](double time) {
      return std::min(kWidth - 1, static_cast<std::size_t>(time / seconds * static_cast<double>(kWidth)));
    };
    for (std::size_t i = at(span.start); i <= at(span.end - 1e-9 * seconds); ++i) text[i] = mark;
  }
  return text;
}

void add_timeline(const RankPlans& set, std::string_view name, double seconds, Series& drawn, Series& data) {
  for (std::size_t r = 0; r < set.of.size(); ++r) {
    const Phase& phase = set.of[r]->plan->phases.front();
    for (const Lane lane : {Lane::compute, Lane::out, Lane::in, Lane::reduce})
      drawn.rows.push_back({fmt::format("{}, device {}", name, r), std::string(lane_name(lane)),
                            strip(*set.of[r]->plan, set.timelines[r], lane, seconds)});
    for (const Span& span : set.timelines[r].spans) {
      const Op& op = phase.ops[static_cast<std::size_t>(span.op)];
      data.rows.push_back({std::string(name), fmt::format("{}", r), std::string(lane_name(op.lane)),
                           op.is_run() ? task_name(*phase.step, op.run().task) : "copy",
                           fmt::format("{:.6f}", span.start), fmt::format("{:.6f}", span.end)});
    }
  }
}

Report figure3(Workbench& bench) {
  Report report;
  report.setting =
      "VGG16, batch 120, two P100 at one switch; above: every device swaps every layer, below: each layer on one of "
      "the two. F, B: "
      "forward and backward tasks; o, i: swaps out and in; s: sums on the CPU; one line is as long as the slower step";
  const Bench at(bench, "vgg16", "p100", 120, p100_at(1, 2));
  const RankPlans original = at.original(), below = at.staggered(2), triggered = at.optimized(2);
  report.only_ours("original", "s", original.seconds, 3);
  report.only_ours("each layer on one device", "s", below.seconds, 3);
  report.only_ours("the same, swap-ins at their best time", "s", triggered.seconds, 3);
  Series drawn{"figure3_drawn", {"device", "lane", "time"}, {}, true};
  Series data{"figure3", {"way", "device", "lane", "task", "start_s", "end_s"}, {}, false};
  add_timeline(original, "original", original.seconds, drawn, data);
  add_timeline(below, "in turn", original.seconds, drawn, data);
  add_timeline(triggered, "triggered", original.seconds, drawn, data);
  report.notes = {"The figure is drawn without a scale."};
  report.series.push_back(std::move(drawn));
  report.series.push_back(std::move(data));
  return report;
}

}  // namespace

std::span<const Experiment> multi_gpu_experiments() {
  static constexpr std::array<Experiment, 4> kExperiments{{
      {"figure3", "Timelines of swapping on two devices", figure3},
      {"table1", "Largest batch and speed of one device", table1},
      {"table2", "Images per second of two devices", table2},
      {"table3", "Images per second of four devices", table3},
  }};
  return kExperiments;
}

}  // namespace tide::reproduce
