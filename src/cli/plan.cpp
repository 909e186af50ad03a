// tide plan: plans without running.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/cluster_options.h"
#include "cli/command.h"
#include "cli/cost_options.h"
#include "plan/plan_json.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/policy.h"
#include "planner/ranks/triggers.h"
#include "report/table.h"
#include "train/plan_network.h"

namespace tide {
namespace {

using nlohmann::ordered_json;

struct PlanArguments {
  ModelArguments model;
  BudgetArguments budget;
  StepArguments step;
  PlannerArguments planner;
  CostArguments cost;
  ClusterArguments cluster;
  std::string save;
  bool inference = false, explain = false;
  bool json = false;
};

ordered_json header(const PlanArguments& arguments, const Network& network, const std::optional<Bytes>& memory,
                    bool feasible) {
  return {{"model", network.name},
          {"batch", arguments.step.batch},
          {"policy", arguments.planner.policy},
          {"rules", arguments.step.rules},
          {"memory_bytes", memory ? ordered_json(memory->count()) : ordered_json(nullptr)},
          {"feasible", feasible}};
}

void print_json(const PlanArguments& arguments, const Network& network, const PlanResult& result,
                const PlanSummary& summary, double predicted, double ideal) {
  const Plan& plan = *result.plan;
  ordered_json out = header(arguments, network, plan.memory[Tier::device], true);
  out["numerics"] = numerics_name(plan.numerics);
  out["peak_bytes"] = summary.peak[Tier::device].count();
  out["peak_data_bytes"] = summary.peak_data_bytes.count();
  out["peak_step"] = summary.peak_step;
  out["peak_task"] = summary.peak_task;
  out["live_data_tensors_at_peak"] = summary.live_data_tensors_at_peak;
  out["max_live_data_tensors"] = summary.max_live_data_tensors;
  out["data_tensors"] = summary.data_tensors;
  out["data_bytes"] = summary.data_bytes.count();
  out["floor_bytes"] = result.floor[Tier::device].count();
  out["recomputed_tasks"] = summary.recomputed_tasks;
  out["offloaded_bytes"] = summary.offloaded_bytes.count();
  out["prefetched_bytes"] = summary.prefetched_bytes.count();
  out["host_peak_bytes"] = summary.peak[Tier::host].count();
  out["resting_bytes"] = summary.resting_bytes.count();
  out["phases"] = plan.phases.size();
  out["rounds"] = summary.rounds;
  out["sub_batch"] = sub_batch_of(plan);
  out["predicted_seconds"] = predicted;
  out["ideal_seconds"] = ideal;
  out["plan_seconds"] = result.plan_seconds;
  out["check_seconds"] = result.check_seconds;
  ordered_json classes;
  for (int c = 0; c < kTensorClasses; ++c)
    classes[std::string(class_name(static_cast<TensorClass>(c)))] =
        summary.classes[static_cast<std::size_t>(c)].count();
  classes["workspace"] = summary.workspace_at_peak.count();
  out["classes"] = classes;
  out["steps"] = ordered_json::array();
  for (const StepUsage& step : summary.steps)
    out["steps"].push_back({{"step", step.step},
                            {"task", step.task},
                            {"live_data_bytes", step.live_data_bytes.count()},
                            {"live_data_tensors", step.live_data_tensors},
                            {"live_bytes", step.live_bytes.count()}});
  fmt::print("{}\n", out.dump(2));
}

void print_text(const PlanArguments& arguments, const Network& network, const PlanResult& result,
                const PlanSummary& summary, double predicted, const std::string& source) {
  const Plan& plan = *result.plan;
  fmt::print("{}, batch {}, {}: policy {}, rules {}\n\n", network.name, arguments.step.batch,
             arguments.inference ? "forward only" : "one training step", arguments.planner.policy,
             arguments.step.rules);
  const std::string budget = plan.memory[Tier::device]
                                 ? fmt::format(" of {} ({:.0f}%)", format_size(*plan.memory[Tier::device]),
                                               100 * static_cast<double>(summary.peak[Tier::device].count()) /
                                                   static_cast<double>(plan.memory[Tier::device]->count()))
                                 : "";
  fmt::print("  peak memory      {}{}: {} bytes by address\n", format_size(summary.peak[Tier::device]), budget,
             summary.peak[Tier::device].count());
  fmt::print("  most alive       {} at {}\n", format_size(summary.peak_live_bytes), summary.peak_live_task);
  fmt::print("  data tensors     {} with {} in all; at most {} alive, at step {} ({})\n", summary.data_tensors,
             format_size(summary.data_bytes), format_size(summary.peak_data_bytes), summary.peak_step,
             summary.peak_task);
  if (summary.rounds > 1)
    fmt::print("  sub-batches      {} rounds of {} samples; gradients are added up: numerics {}\n", summary.rounds,
               sub_batch_of(plan), numerics_name(plan.numerics));
  else if (sub_batch_of(plan) < batch_of(plan))
    fmt::print("  sub-batches      {} samples at a time between batch norms, which have all {}: numerics {}\n",
               sub_batch_of(plan), batch_of(plan), numerics_name(plan.numerics));
  fmt::print("  tasks            {}, of them {} recomputed; {} moved out, {} back\n", summary.tasks,
             summary.recomputed_tasks, format_size(summary.offloaded_bytes), format_size(summary.prefetched_bytes));
  if (!summary.peak[Tier::host].is_zero())
    fmt::print("  host memory      {}: {} bytes, {} of them of parameters and optimizer state\n",
               format_size(summary.peak[Tier::host]), summary.peak[Tier::host].count(),
               summary.resting_bytes.is_zero() ? "none" : format_size(summary.resting_bytes));
  fmt::print("  predicted step   {:.3g} s, {}\n", predicted, source);
  fmt::print("  planned in       {:.3g} s, checked in {:.3g} s: valid\n\n", result.plan_seconds, result.check_seconds);
  Table table({{"at the peak"}, {"bytes", Align::right}, {"", Align::right}});
  for (int c = 0; c < kTensorClasses; ++c) {
    const Bytes bytes = summary.classes[static_cast<std::size_t>(c)];
    if (!bytes.is_zero())
      table.add(
          {std::string(class_name(static_cast<TensorClass>(c))), fmt::format("{}", bytes.count()), format_size(bytes)});
  }
  if (!summary.workspace_at_peak.is_zero())
    table.add(
        {"workspace", fmt::format("{}", summary.workspace_at_peak.count()), format_size(summary.workspace_at_peak)});
  fmt::print("{}", table.text());
  if (!arguments.save.empty()) fmt::print("\nsaved to {}\n", arguments.save);
}

// What the search tried, in its order; an asterisk marks what was kept of those beside it.
void print_trials(const std::vector<Trial>& trials) {
  Table table({{"tried"}, {"predicted", Align::right}, {"took", Align::right}, {"kept"}});
  for (const Trial& trial : trials)
    table.add({std::string(2 * static_cast<std::size_t>(trial.depth), ' ') + trial.name,
               trial.seconds ? fmt::format("{:.4g} s", *trial.seconds) : "does not fit",
               trial.took > 0 ? fmt::format("{:.3g} ms", 1e3 * trial.took) : "", trial.kept ? "*" : ""});
  fmt::print("\n{}", table.text());
}

int print_infeasible(const PlanArguments& arguments, const Network& network, const PlanResult& result,
                     const PlannerOptions& options) {
  if (arguments.json) {
    ordered_json out = header(arguments, network, options.memory[Tier::device], false);
    out["floor_bytes"] = result.floor[Tier::device].count();
    out["bottleneck_task"] = result.bottleneck_task;
    fmt::print("{}\n", out.dump(2));
  }
  fmt::print(stderr, "tide: {}\n", infeasible_text(result, arguments.planner.policy, options));
  return kInfeasible;
}

// What several devices come to.
struct ClusterOutcome {
  RankPlans set;
  std::optional<double> alone;  // one device by itself, planned in the same way
  // Of what so many devices by themselves would do.
  [[nodiscard]] double efficiency() const { return alone && set.fits() ? *alone / set.seconds : 0; }
};

void print_cluster_json(const PlanArguments& arguments, const Network& network, const Cluster& cluster,
                        const ClusterOutcome& outcome, const std::optional<Bytes>& memory) {
  ordered_json out = header(arguments, network, memory, true);
  out["devices"] = cluster.devices();
  out["topology"] = cluster.topology().name;
  out["reduce"] = arguments.cluster.reduce;
  out["stagger"] = arguments.cluster.stagger;
  out["way"] = outcome.set.way;
  out["predicted_seconds"] = outcome.set.seconds;
  out["alone_seconds"] = outcome.alone ? ordered_json(*outcome.alone) : ordered_json(nullptr);
  out["efficiency"] = outcome.efficiency();
  out["ranks"] = ordered_json::array();
  for (std::size_t r = 0; r < outcome.set.of.size(); ++r) {
    const PlanSummary summary = summarize(*outcome.set.of[r]->plan);
    out["ranks"].push_back({{"policy", outcome.set.of[r]->plan->policy},
                            {"peak_bytes", summary.peak[Tier::device].count()},
                            {"offloaded_bytes", summary.offloaded_bytes.count()},
                            {"recomputed_tasks", summary.recomputed_tasks},
                            {"seconds_without_others", simulate(*outcome.set.of[r]->plan, cluster.cost()).seconds},
                            {"seconds", outcome.set.timelines[r].seconds}});
  }
  fmt::print("{}\n", out.dump(2));
}

void print_cluster_text(const PlanArguments& arguments, const Network& network, const Cluster& cluster,
                        const ClusterOutcome& outcome, const std::string& source) {
  fmt::print("{}, batch {} on each of {} devices ({}), one training step: policy {}, rules {}\n\n", network.name,
             arguments.step.batch, cluster.devices(), cluster.topology().name, arguments.planner.policy,
             arguments.step.rules);
  Table table({{"device"},
               {"policy"},
               {"switch", Align::right},
               {"peak", Align::right},
               {"moved out", Align::right},
               {"recomputed", Align::right},
               {"without others", Align::right},
               {"together", Align::right}});
  const std::vector<DevicePlace> places = device_places(cluster.topology());
  for (std::size_t r = 0; r < outcome.set.of.size(); ++r) {
    const PlanSummary summary = summarize(*outcome.set.of[r]->plan);
    table.add({fmt::format("{}", r), outcome.set.of[r]->plan->policy, fmt::format("{}", places[r].switch_in_all),
               format_size(summary.peak[Tier::device]),
               summary.offloaded_bytes.is_zero() ? "0" : format_size(summary.offloaded_bytes),
               fmt::format("{}", summary.recomputed_tasks),
               fmt::format("{:.4g} s", simulate(*outcome.set.of[r]->plan, cluster.cost()).seconds),
               fmt::format("{:.4g} s", outcome.set.timelines[r].seconds)});
  }
  fmt::print("{}\n", table.text());
  fmt::print("  swaps            {}\n", outcome.set.way);
  fmt::print("  predicted step   {:.4g} s, {:.4g} samples a second in all; sums by {}; times are {}\n",
             outcome.set.seconds,
             static_cast<double>(arguments.step.batch) * static_cast<double>(cluster.devices()) / outcome.set.seconds,
             arguments.cluster.reduce, source);
  if (outcome.alone)
    fmt::print("  efficiency       {:.1f}% of {} devices that are alone, {:.4g} s each\n", 100 * outcome.efficiency(),
               cluster.devices(), *outcome.alone);
}

// The paper's first step: the largest batch with late triggers, grown by a constant, where that is below the one asked
// for. Nothing where not even that constant fits.
std::string late_batch_text(const PlanArguments& arguments, const Cluster& cluster, const Policy& policy) {
  const std::int64_t asked = arguments.step.batch;
  constexpr std::int64_t kGrowth = 10;  // as in the paper's tables
  try {
    const std::int64_t largest = cluster.largest_late_batch(policy, std::min(kGrowth, asked), asked);
    if (largest > 0) require_late_batch(asked, largest, std::min(kGrowth, asked));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

int run_cluster(const PlanArguments& arguments, const NetworkPtr& network, const Target& target) {
  if (arguments.inference) throw Error("--inference has no gradients to sum; leave it or --devices out");
  if (!arguments.save.empty()) throw Error("--save writes the plan of one device; leave it or --devices out");
  const PlannerOptions options = arguments.planner.options(arguments.budget.resolve(target));
  const Policy& policy = find_policy(arguments.planner.policy);
  const Cluster cluster(arguments.cluster, arguments.step, network, target, options);
  const Stagger stagger = stagger_from_name(arguments.cluster.stagger);
  ClusterOutcome outcome{.set = cluster.plan(policy, stagger), .alone = {}};
  if (!outcome.set.fits() && stagger == Stagger::paper && !arguments.json) {
    const std::string text = late_batch_text(arguments, cluster, policy);
    if (!text.empty()) {
      fmt::print(stderr, "tide: {}\n", text);
      return kInfeasible;
    }
  }
  if (!outcome.set.fits()) return print_infeasible(arguments, *network, outcome.set.short_one(), options);
  outcome.alone = cluster.seconds_alone(policy, stagger);
  if (arguments.json)
    print_cluster_json(arguments, *network, cluster, outcome, options.memory[Tier::device]);
  else
    print_cluster_text(arguments, *network, cluster, outcome, target.source());
  if (arguments.explain && !arguments.json) print_trials(outcome.set.trials);
  return kDone;
}

int run(const PlanArguments& arguments) {
  const NetworkPtr network = arguments.model.load();
  const bool several = arguments.cluster.any();
  const std::unique_ptr<Target> target = arguments.cost.target(arguments.step);
  if (several) return run_cluster(arguments, network, *target);
  SessionOptions options;
  arguments.step.apply_to(options);
  options.policy = arguments.planner.policy;
  options.planner = arguments.planner.options(arguments.budget.resolve(*target));
  const StepVariant variant{arguments.step.batch, !arguments.inference};
  const PlanResult result = plan_network(network, variant, options, target.get());
  if (!result.plan) return print_infeasible(arguments, *network, result, options.planner);
  if (!arguments.save.empty()) save_plan(*result.plan, arguments.save);
  const PlanSummary summary = summarize(*result.plan);
  const double predicted = *result.seconds;
  if (arguments.json)
    print_json(arguments, *network, result, summary, predicted,
               ideal_seconds(target->build(network, step_options(variant, options), {}), target->cost()));
  else
    print_text(arguments, *network, result, summary, predicted, target->source());
  if (arguments.explain && !arguments.json) print_trials(result.trials);
  return kDone;
}

}  // namespace

Command plan_command(CLI::App& root) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* app = root.add_subcommand("plan", "Plan a step without running it");
  arguments->model.add_to(*app);
  arguments->step.add_to(*app);
  arguments->budget.add_to(*app);
  arguments->planner.add_to(*app);
  arguments->cost.add_to(*app);
  arguments->cluster.add_to(*app);
  app->add_flag("--inference", arguments->inference, "A forward-only step");
  app->add_option("--save", arguments->save, "Write the plan to this file");
  app->add_flag("--explain", arguments->explain, "Print every way that was tried, its time, and which was kept");
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
