// tide compare: every policy side by side at one budget.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/cluster_options.h"
#include "cli/command.h"
#include "cli/cost_options.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/bound/lower_bound.h"
#include "planner/policy.h"
#include "report/table.h"

namespace tide {
namespace {

using nlohmann::ordered_json;

struct CompareArguments {
  ModelArguments model;
  BudgetArguments budget;
  StepArguments step;
  PlannerArguments planner;
  CostArguments cost;
  ClusterArguments cluster;
  bool inference = false;
  bool json = false;
};

// What one policy makes of the step.
struct Row {
  const Policy* policy = nullptr;
  Bytes floor;
  std::string bottleneck_task;
  double plan_seconds = 0;
  struct Plan {
    Bytes peak, offloaded, prefetched;
    std::int64_t recomputed_tasks = 0;
    double predicted = 0, gap = 0;  // the gap to the lower bound
    Numerics numerics = Numerics::identical;
  };
  std::optional<Plan> plan;       // none: it does not fit
  bool keeps_parameters = false;  // on the device, but they are to rest in host memory: not planned
};

struct Comparison {
  double ideal = 0;
  LowerBound bound;
  std::vector<Row> rows;
};

Row row_of(const Policy& policy, const Target& target, const BuildStep& build, const PlannerOptions& options,
           const LowerBound& bound) {
  if (options.parameters == Parameters::host && !policy.rests_parameters) {
    Row row;
    row.policy = &policy;
    row.keeps_parameters = true;
    return row;
  }
  const PlanResult result = plan_on(target, policy, build, options);
  Row row{&policy, result.floor[Tier::device], result.bottleneck_task, result.plan_seconds, {}, false};
  if (!result.plan) return row;
  const PlanSummary summary = summarize(*result.plan);
  const double predicted = *result.seconds;
  row.plan = {.peak = summary.peak[Tier::device],
              .offloaded = summary.offloaded_bytes,
              .prefetched = summary.prefetched_bytes,
              .recomputed_tasks = summary.recomputed_tasks,
              .predicted = predicted,
              .gap = predicted / bound.seconds - 1,
              .numerics = result.plan->numerics};
  return row;
}

Comparison compare(const Target& target, const BuildStep& build, const PlannerOptions& options) {
  target.cover(build, options.memory[Tier::device]);
  Comparison comparison{ideal_seconds(build({}), target.cost()), fused_lower_bound(build, target.cost(), options), {}};
  for (const Policy& policy : policies())
    comparison.rows.push_back(row_of(policy, target, build, options, comparison.bound));
  return comparison;
}

Table table_of(const std::vector<Row>& rows) {
  Table table({{"policy"},
               {"fits"},
               {"peak", Align::right},
               {"peak bytes", Align::right},
               {"of baseline", Align::right},
               {"at least", Align::right},
               {"moved", Align::right},
               {"recomputed", Align::right},
               {"predicted", Align::right},
               {"above bound", Align::right},
               {"numerics"},
               {"planned", Align::right}});
  const auto baseline = std::ranges::find(rows, "baseline", [](const Row& row) { return row.policy->name; });
  for (const Row& row : rows) {
    const auto share = [&](Bytes bytes) {
      if (baseline->floor.is_zero()) return std::string("-");
      return fmt::format("{:.1f}%",
                         100 * static_cast<double>(bytes.count()) / static_cast<double>(baseline->floor.count()));
    };
    const std::string name(row.policy->name), planned = fmt::format("{:.3g} ms", 1e3 * row.plan_seconds);
    if (row.keeps_parameters) {
      table.add({name, "cannot", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    if (!row.plan) {
      table.add({name, "no", "-", "-", share(row.floor), format_size(row.floor), "-", "-", "-", "-", "-", planned});
      continue;
    }
    const Bytes moved = row.plan->offloaded + row.plan->prefetched;
    table.add({name, "yes", format_size(row.plan->peak), fmt::format("{}", row.plan->peak.count()),
               share(row.plan->peak), format_size(row.floor), moved.is_zero() ? "0" : format_size(moved),
               fmt::format("{}", row.plan->recomputed_tasks), fmt::format("{:.3g} s", row.plan->predicted),
               fmt::format("{:.1f}%", 100 * row.plan->gap), std::string(numerics_name(row.plan->numerics)), planned});
  }
  return table;
}

void print_json(const Comparison& comparison) {
  ordered_json list = ordered_json::array();
  for (const Row& row : comparison.rows) {
    ordered_json entry{{"policy", row.policy->name}, {"feasible", row.plan.has_value()}};
    if (row.keeps_parameters) {
      entry["keeps_parameters_on_device"] = true;
      list.push_back(std::move(entry));
      continue;
    }
    entry["floor_bytes"] = row.floor.count();
    if (row.plan) {
      entry["numerics"] = numerics_name(row.plan->numerics);
      entry["peak_bytes"] = row.plan->peak.count();
      entry["offloaded_bytes"] = row.plan->offloaded.count();
      entry["recomputed_tasks"] = row.plan->recomputed_tasks;
      entry["predicted_seconds"] = row.plan->predicted;
      entry["gap"] = row.plan->gap;
      entry["plan_seconds"] = row.plan_seconds;
    } else {
      entry["bottleneck_task"] = row.bottleneck_task;
    }
    list.push_back(std::move(entry));
  }
  fmt::print("{}\n", ordered_json{{"ideal_seconds", comparison.ideal},
                                  {"lower_bound_seconds", comparison.bound.seconds},
                                  {"policies", list}}
                         .dump(2));
}

void print_text(const CompareArguments& arguments, const Network& network, const std::optional<Bytes>& memory,
                const Comparison& comparison, const std::string& source) {
  fmt::print("{}, batch {}, rules {}, {}\n\n{}\n", network.name, arguments.step.batch, arguments.step.rules,
             memory ? fmt::format("budget {}", format_size(*memory)) : "no budget", table_of(comparison.rows).text());
  fmt::print(
      "Peaks count parameters, gradients, optimizer state and workspaces; at least: the smallest budget that a\n"
      "policy can work with; times are {}.\n",
      source);
  if (std::ranges::any_of(comparison.rows, &Row::keeps_parameters))
    fmt::print("cannot: the policy keeps parameters on the device, and they are to rest in host memory.\n");
  fmt::print("No plan that gives the same numbers can be faster than {:.3g} s ({}); with unlimited memory: {:.3g} s.\n",
             comparison.bound.seconds,
             comparison.bound.solved ? "a linear program over all ways to keep, move and recompute"
             : memory                ? "the tasks alone: this build has no solver for linear programs, see TIDE_CLP"
                                     : "the tasks alone",
             comparison.ideal);
  for (const Policy& policy : policies()) fmt::print("  {:<12} {}\n", policy.name, policy.description);
}

// What one policy makes of several devices.
struct ClusterRow {
  const Policy* policy = nullptr;
  Stagger stagger = Stagger::none;
  RankPlans set;
  std::optional<double> alone;
};

std::vector<ClusterRow> cluster_rows(const Cluster& cluster) {
  std::vector<ClusterRow> rows;
  for (const Policy& policy : policies()) {
    for (const Stagger stagger : {Stagger::none, Stagger::paper, Stagger::automatic})
      if (stagger == Stagger::none || policy.swappable != nullptr)
        rows.push_back({&policy, stagger, cluster.plan(policy, stagger), cluster.seconds_alone(policy, stagger)});
  }
  return rows;
}

int run_cluster(const CompareArguments& arguments, const NetworkPtr& network, const Target& target,
                const PlannerOptions& options) {
  if (arguments.inference) throw Error("--inference has no gradients to sum; leave it or --devices out");
  const Cluster cluster(arguments.cluster, arguments.step, network, target, options);
  const std::vector<ClusterRow> rows = cluster_rows(cluster);
  const double samples = static_cast<double>(arguments.step.batch) * static_cast<double>(cluster.devices());
  Table table({{"policy"},
               {"stagger"},
               {"one alone", Align::right},
               {"together", Align::right},
               {"samples/s", Align::right},
               {"efficiency", Align::right},
               {"swaps"}});
  ordered_json list = ordered_json::array();
  bool any = false;
  for (const ClusterRow& row : rows) {
    const bool fits = row.set.fits();
    any = any || fits;
    const double efficiency = fits && row.alone ? *row.alone / row.set.seconds : 0;
    list.push_back({{"policy", row.policy->name},
                    {"stagger", stagger_name(row.stagger)},
                    {"feasible", fits},
                    {"way", row.set.way},
                    {"alone_seconds", row.alone ? ordered_json(*row.alone) : ordered_json(nullptr)},
                    {"predicted_seconds", fits ? ordered_json(row.set.seconds) : ordered_json(nullptr)},
                    {"efficiency", efficiency}});
    table.add({std::string(row.policy->name), std::string(stagger_name(row.stagger)),
               row.alone ? fmt::format("{:.4g} s", *row.alone) : "-",
               fits ? fmt::format("{:.4g} s", row.set.seconds) : "does not fit",
               fits ? fmt::format("{:.4g}", samples / row.set.seconds) : "-",
               efficiency > 0 ? fmt::format("{:.1f}%", 100 * efficiency) : "-", row.set.way});
  }
  if (arguments.json)
    fmt::print("{}\n", ordered_json{{"devices", cluster.devices()},
                                    {"topology", cluster.topology().name},
                                    {"reduce", arguments.cluster.reduce},
                                    {"policies", list}}
                           .dump(2));
  else
    fmt::print("{}, batch {} on each of {} devices ({}), sums by {}\n\n{}\nTimes are {}.\n", network->name,
               arguments.step.batch, cluster.devices(), cluster.topology().name, arguments.cluster.reduce, table.text(),
               target.source());
  if (any) return kDone;
  fmt::print(stderr, "tide: no policy fits on every device; use a smaller --batch\n");
  return kInfeasible;
}

int run(const CompareArguments& arguments) {
  const NetworkPtr network = arguments.model.load();
  const bool several = arguments.cluster.any();
  const std::unique_ptr<Target> target = arguments.cost.target(arguments.step);
  const PlannerOptions options = arguments.planner.options(arguments.budget.resolve(*target));
  if (several) return run_cluster(arguments, network, *target, options);
  const auto build = [&](const StepChoice& choice) {
    return target->build(network, arguments.step.options(!arguments.inference), choice);
  };
  const Comparison comparison = compare(*target, build, options);
  if (arguments.json)
    print_json(comparison);
  else
    print_text(arguments, *network, options.memory[Tier::device], comparison, target->source());
  if (std::ranges::any_of(comparison.rows, [](const Row& row) { return row.plan.has_value(); })) return kDone;
  fmt::print(stderr, "tide: no policy fits into {}; see what they need at least, or use a smaller --batch\n",
             options.memory[Tier::device] ? format_size(*options.memory[Tier::device]) : "memory");
  return kInfeasible;
}

}  // namespace

Command compare_command(CLI::App& root) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* app = root.add_subcommand("compare", "Every policy side by side at one budget");
  arguments->model.add_to(*app);
  arguments->step.add_to(*app);
  arguments->budget.add_to(*app);
  arguments->planner.add_to(*app, false);
  arguments->cost.add_to(*app);
  arguments->cluster.add_to(*app, false);
  app->add_flag("--inference", arguments->inference, "A forward-only step");
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
