// tide profile: how long each task takes on this machine.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/command.h"
#include "cli/link_rate.h"
#include "cli/options.h"
#include "cost/algorithms.h"
#include "executor/measure.h"
#include "plan/timeline.h"
#include "planner/policy.h"
#include "report/table.h"
#include "step/build.h"

namespace tide {
namespace {

struct ProfileArguments {
  ModelArguments model;
  StepArguments step;
  std::string link, save;
  int runs = 9;
  bool json = false;
};

std::string rate_text(double bytes_per_second) { return fmt::format("{:.2f} GB/s", bytes_per_second / 1e9); }

// What a step's tasks add up to, by kind of layer and task.
Table by_kind(const Step& step, const CostModel& measured, const CostModel& modelled) {
  struct Sum {
    std::int64_t tasks = 0;
    double measured = 0, modelled = 0;
  };
  std::map<std::string, Sum> sums;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const Task& task = step.task(TaskId(t));
    const bool of_layer = is_of_layer(task.kind);
    Sum& sum = sums[of_layer ? fmt::format("{} {}", kind_name(step.layer_kind(task)), kind_name(task.kind))
                             : std::string(kind_name(task.kind))];
    ++sum.tasks;
    sum.measured += fastest_seconds(step, measured, TaskId(t));
    sum.modelled += fastest_seconds(step, modelled, TaskId(t));
  }
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.measured > b.second.measured; });
  const double total = ideal_seconds(step, measured);
  Table table({{"tasks of kind"},
               {"number", Align::right},
               {"measured", Align::right},
               {"share", Align::right},
               {"modelled", Align::right}});
  for (const auto& [name, sum] : rows)
    table.add({name, fmt::format("{}", sum.tasks), fmt::format("{:.3f} ms", 1e3 * sum.measured),
               fmt::format("{:.1f}%", 100 * sum.measured / total), fmt::format("{:.3f} ms", 1e3 * sum.modelled)});
  table.add({"all", fmt::format("{}", step.ordered_tasks), fmt::format("{:.3f} ms", 1e3 * total), "100.0%",
             fmt::format("{:.3f} ms", 1e3 * ideal_seconds(step, modelled))});
  return table;
}

int run(const ProfileArguments& arguments) {
  if (arguments.runs < 1) throw Error("--runs {} is not possible; measure at least once", arguments.runs);
  const double link = arguments.link.empty() ? 0 : parse_link_rate(arguments.link);
  const NetworkPtr network = arguments.model.load();
  const std::unique_ptr<Backend> backend = arguments.step.make(true);
  Step step = build_step(network, arguments.step.options(network->has_loss()));
  backend->annotate(step);
  // As plans run it: with results in place of operands where that is possible.
  const PlanResult planned = make_plan(find_policy("liveness"), step, RooflineModel(generic_cpu()), {});
  const Step& merged = *planned.plan->phases.front().step;

  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  MeasureOptions options;
  options.runs = arguments.runs;
  options.link_bytes_per_second = link;
  if (terminal)
    options.progress = [](std::size_t done, std::size_t total) {
      fmt::print(stderr, "\rmeasuring {} of {} ", done + 1, total);
    };
  const Profile profile = measure_profile(merged, *backend, options);
  if (terminal) fmt::print(stderr, "\r{:40}\r", "");
  if (!arguments.save.empty()) save_profile(profile, arguments.save);
  if (arguments.json) {
    fmt::print("{}\n", profiles_to_json(std::span(&profile, 1)));
    return kDone;
  }
  const ProfileModel measured({profile});
  fmt::print("{}, batch {}, rules {}: {} different tasks among {}\non {}\nwith backend {}\n\n{}\n", network->name,
             arguments.step.batch, arguments.step.rules, profile.task_seconds.size(), merged.tasks.size(),
             profile.machine, profile.backend, by_kind(merged, measured, RooflineModel(generic_cpu())).text());
  fmt::print("Copies, both ways at once{}: {} to host memory, {} back, {:.0f} us more for each.\n",
             link > 0 ? fmt::format(", throttled to {}", rate_text(link)) : "", rate_text(profile.out.bytes_per_second),
             rate_text(profile.in.bytes_per_second),
             1e6 * std::max(profile.out.latency_seconds, profile.in.latency_seconds));
  fmt::print("Each task was measured alone, {} times; modelled is what plans assume without a profile.\n",
             arguments.runs);
  if (!arguments.save.empty()) fmt::print("saved to {}\n", arguments.save);
  return kDone;
}

}  // namespace

Command profile_command(CLI::App& root) {
  auto arguments = std::make_shared<ProfileArguments>();
  CLI::App* app =
      root.add_subcommand("profile", "Measure each task of a step on this machine, to plan with real times");
  arguments->model.add_to(*app);
  arguments->step.add_to(*app);
  app->add_option("--runs", arguments->runs, "Runs of each task; the median counts")->capture_default_str();
  app->add_option("--link", arguments->link, "Throttle copies to this speed, such as 2GB/s, as tide train --link does");
  app->add_option("--save", arguments->save, "Write the times here, for --profile; adds to a file that exists");
  app->add_flag("--json", arguments->json, "Print the profile as JSON");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
