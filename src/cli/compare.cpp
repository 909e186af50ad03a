// tide compare: every policy side by side at one budget.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/command.h"
#include "cli/cost_options.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/bound/lower_bound.h"
#include "planner/policy.h"
#include "planner/search/search.h"
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
  bool inference = false;
  bool json = false;
};

int run(const CompareArguments& arguments) {
  const NetworkPtr network = arguments.model.load();
  const PlannerOptions options = arguments.planner.options(arguments.cost.resolve(arguments.budget));
  const std::optional<Bytes>& memory = options.memory[Tier::device];
  const std::shared_ptr<const CostModel> model = arguments.cost.model();
  const CostModel& cost = *model;
  const auto build = [&](const StepChoice& choice) {
    return arguments.cost.build(arguments.step, network, arguments.inference, choice);
  };
  const double ideal = ideal_seconds(build({}), cost);
  const LowerBound bound = fused_lower_bound(build, cost, options);

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
  ordered_json list = ordered_json::array();
  double baseline = 0;
  bool any = false;
  for (const Policy& policy : policies()) {
    const PlanResult result = search_plan(policy, build, cost, options);
    if (policy.name == "baseline") baseline = static_cast<double>(result.floor[Tier::device].count());
    const auto share = [&](Bytes bytes) {
      return baseline > 0 ? fmt::format("{:.1f}%", 100 * static_cast<double>(bytes.count()) / baseline) : "-";
    };
    const std::string planned = fmt::format("{:.3g} ms", 1e3 * result.plan_seconds);
    ordered_json entry{{"policy", policy.name}, {"feasible", result.plan.has_value()}};
    entry["floor_bytes"] = result.floor[Tier::device].count();
    if (!result.plan) {
      table.add({std::string(policy.name), "no", "-", "-", share(result.floor[Tier::device]),
                 format_size(result.floor[Tier::device]), "-", "-", "-", "-", "-", planned});
      entry["bottleneck_task"] = result.bottleneck_task;
      list.push_back(std::move(entry));
      continue;
    }
    any = true;
    const PlanSummary summary = summarize(*result.plan);
    const double predicted = simulate(*result.plan, cost).seconds;
    const double gap = predicted / bound.seconds - 1;
    const Bytes moved = summary.offloaded_bytes + summary.prefetched_bytes;
    table.add({std::string(policy.name), "yes", format_size(summary.peak[Tier::device]),
               fmt::format("{}", summary.peak[Tier::device].count()), share(summary.peak[Tier::device]),
               format_size(result.floor[Tier::device]), moved.is_zero() ? "0" : format_size(moved),
               fmt::format("{}", summary.recomputed_tasks), fmt::format("{:.3g} s", predicted),
               fmt::format("{:.1f}%", 100 * gap), std::string(numerics_name(result.plan->numerics)), planned});
    entry["numerics"] = numerics_name(result.plan->numerics);
    entry["peak_bytes"] = summary.peak[Tier::device].count();
    entry["offloaded_bytes"] = summary.offloaded_bytes.count();
    entry["recomputed_tasks"] = summary.recomputed_tasks;
    entry["predicted_seconds"] = predicted;
    entry["gap"] = gap;
    entry["plan_seconds"] = result.plan_seconds;
    list.push_back(std::move(entry));
  }
  if (arguments.json) {
    fmt::print(
        "{}\n",
        ordered_json{{"ideal_seconds", ideal}, {"lower_bound_seconds", bound.seconds}, {"policies", list}}.dump(2));
  } else {
    fmt::print("{}, batch {}, rules {}, {}\n\n{}\n", network->name, arguments.step.batch, arguments.step.rules,
               memory ? fmt::format("budget {}", format_size(*memory)) : "no budget", table.text());
    fmt::print(
        "Peaks count parameters, gradients, optimizer state and workspaces; at least: the smallest budget that a\n"
        "policy can work with; times are {}.\n",
        arguments.cost.source(cost));
    fmt::print(
        "No plan that gives the same numbers can be faster than {:.3g} s ({}); with unlimited memory: {:.3g} s.\n",
        bound.seconds,
        bound.solved ? "a linear program over all ways to keep, move and recompute"
        : memory     ? "the tasks alone: this build has no solver for linear programs, see TIDE_CLP"
                     : "the tasks alone",
        ideal);
    for (const Policy& policy : policies()) fmt::print("  {:<12} {}\n", policy.name, policy.description);
  }
  if (any) return kDone;
  fmt::print(stderr, "tide: no policy fits into {}; see what they need at least, or use a smaller --batch\n",
             memory ? format_size(*memory) : "memory");
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
  app->add_flag("--inference", arguments->inference, "A forward-only step");
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
