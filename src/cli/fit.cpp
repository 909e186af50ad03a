// tide fit: how large a batch, or how deep a network, a budget holds.
#include "report/fit.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/size_text.h"
#include "base/stopwatch.h"
#include "cli/command.h"
#include "cli/cost_options.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/policy.h"
#include "report/resnet_depth.h"

namespace tide {
namespace {

using nlohmann::ordered_json;

struct FitArguments {
  ModelArguments model;
  BudgetArguments budget;
  StepArguments step;
  PlannerArguments planner;
  CostArguments cost;
  std::string reserve = "0";
  bool json = false;
};

// The budget less the reserve; a device's own memory where no other budget is given.
PlannerOptions options_of(const FitArguments& arguments, const Target& target) {
  BudgetArguments budget = arguments.budget;
  if (!budget.memory) {
    if (arguments.cost.device.empty())
      throw Error("tide fit needs a budget: give --memory, such as 12GiB, or --device (see tide devices)");
    budget.memory = "device";
  }
  PlannerOptions options = arguments.planner.options(budget.resolve(target));
  const Bytes reserve = parse_size(arguments.reserve);
  if (reserve >= *options.memory[Tier::device])
    throw Error("--reserve {} leaves nothing of {}", arguments.reserve, format_size(*options.memory[Tier::device]));
  *options.memory[Tier::device] -= reserve;
  return options;
}

struct Answer {
  FitResult fit;
  bool depth = false;             // what was searched: the unknown number of a model, or the batch
  bool is_largest = false;        // no larger one fits: needs are known to grow
  std::string_view why_not;       // where larger ones may fit
  bool keeps_parameters = false;  // on the device, unasked
  PlannerOptions options;
  std::int64_t batch = 0;
  std::string model;
};

// A line now and then, so that a long search is not silent.
class Progress {
 public:
  explicit Progress(std::string_view what) : what_(what) {}
  void at(std::int64_t size, std::int64_t fits) {
    const std::lock_guard lock(mutex_);
    size_ = size;
    fits_ = fits;
  }

 private:
  void tell(const std::stop_token& stop) {
    constexpr std::chrono::seconds kPatience(3);
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, stop, kPatience, [] { return false; }) && !stop.stop_requested())
      fmt::print(stderr, "tide: after {:.0f} s: {} {} fits, {} is looked at\n", watch_.seconds(), what_, fits_, size_);
  }

  std::string_view what_;
  Stopwatch watch_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::int64_t size_ = 1, fits_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) { tell(stop); }};
};

// Planned as `tide plan` does it.
Answer search(const FitArguments& arguments, const Target& target) {
  Answer answer;
  answer.options = options_of(arguments, target);
  answer.depth = has_unknown(arguments.model.model);
  // With all the host memory there is for parameters, nothing would bound the depth.
  answer.keeps_parameters =
      answer.depth && !answer.options.memory[Tier::host] && answer.options.parameters == Parameters::automatic;
  if (answer.keeps_parameters) answer.options.parameters = Parameters::device;
  const Policy& policy = find_policy(arguments.planner.policy);
  if (!answer.depth && policy.cuts && allowed_by(answer.options.batch) != Numerics::identical)
    throw Error("in sub-batches any batch fits that one sample does; leave out --allow and the like for a whole one");
  const NetworkPtr network = answer.depth ? nullptr : arguments.model.load();
  const auto builder = [&](std::int64_t size) -> BuildStep {
    StepOptions options = arguments.step.options(true);
    if (!answer.depth) options.batch = size;
    NetworkPtr sized = network;
    if (answer.depth) {
      ModelArguments model = arguments.model;
      model.model = with_unknown(model.model, size);
      sized = model.load();
    }
    return [&target, sized = std::move(sized), options](const StepChoice& choice) {
      return target.build(sized, options, choice);
    };
  };
  FitProblem problem;
  problem.memory = answer.options.memory;
  problem.floor = [&](std::int64_t size) { return search_floor(policy, builder(size), target.cost(), answer.options); };
  problem.plan = [&](std::int64_t size) {
    return search_any_plan(policy, builder(size), target.cost(), answer.options);
  };
  problem.answer = [&](std::int64_t size, PlanResult found) {
    const bool is_whole = found.plan && found.plan->policy == policy.name && target.sheet() != nullptr;
    return is_whole ? std::move(found) : plan_on(target, policy, builder(size), answer.options);
  };
  // Libraries have algorithms of their own for some batches. And what a policy leaves in host memory is its own affair.
  const bool grows = policy.floor_grows != nullptr && policy.floor_grows(answer.options.policy);
  const bool on_sheet = target.sheet() != nullptr, host_limited = answer.options.memory[Tier::host].has_value();
  problem.grows = host_limited || (grows && on_sheet);
  answer.is_largest = grows && on_sheet && !host_limited;
  answer.why_not = host_limited ? " of host memory" : !grows ? "" : " on a backend";
  problem.most = answer.depth ? kMostResidualUnits : kMostSamples;
  Progress progress(answer.depth ? "n =" : "batch");
  problem.progress = [&](std::int64_t size, std::int64_t fits) { progress.at(size, fits); };
  answer.fit = largest_fit(problem);
  answer.batch = answer.depth ? arguments.step.batch : answer.fit.size;
  answer.model = answer.depth ? with_unknown(arguments.model.model, std::max<std::int64_t>(answer.fit.size, 1))
                              : arguments.model.model;
  return answer;
}

void print_json(const FitArguments& arguments, const Answer& answer, const PlanSummary& summary, double predicted) {
  ordered_json out;
  if (answer.depth) {
    out["depth"] = residual_depth(answer.model);
    out["n"] = answer.fit.size;
  }
  out["batch"] = answer.batch;
  out["model"] = answer.model;
  out["policy"] = arguments.planner.policy;
  out["rules"] = arguments.step.rules;
  out["memory_bytes"] = answer.options.memory[Tier::device]->count();
  out["peak_bytes"] = summary.peak[Tier::device].count();
  out["floor_bytes"] = answer.fit.plan.floor[Tier::device].count();
  out["host_peak_bytes"] = summary.peak[Tier::host].count();
  out["recomputed_tasks"] = summary.recomputed_tasks;
  out["offloaded_bytes"] = summary.offloaded_bytes.count();
  out["prefetched_bytes"] = summary.prefetched_bytes.count();
  out["predicted_seconds"] = predicted;
  out["images_per_second"] = static_cast<double>(answer.batch) / predicted;
  out["next_floor_bytes"] = answer.fit.beyond.floor[Tier::device].count();
  out["next_bottleneck_task"] = answer.fit.beyond.bottleneck_task;
  out["is_largest"] = answer.is_largest;
  out["sizes_asked"] = answer.fit.asked;
  out["search_seconds"] = answer.fit.seconds;
  out["plan_seconds"] = answer.fit.plan.plan_seconds;
  out["check_seconds"] = answer.fit.plan.check_seconds;
  fmt::print("{}\n", out.dump(2));
}

void print_text(const FitArguments& arguments, const Answer& answer, const PlanSummary& summary, double predicted,
                const std::string& source) {
  const FitResult& fit = answer.fit;
  fmt::print("{} in {}, policy {}, rules {}\n\n", arguments.model.model,
             format_size(*answer.options.memory[Tier::device]), arguments.planner.policy, arguments.step.rules);
  if (answer.depth)
    fmt::print("  {:<16} {} at batch {}: depth {}\n", answer.is_largest ? "deepest" : "fits", answer.model,
               answer.batch, residual_depth(answer.model));
  else
    fmt::print("  {:<16} {}\n", answer.is_largest ? "largest batch" : "batch that fits", answer.batch);
  fmt::print("  peak memory      {}: {} bytes by address; {} in host memory\n", format_size(summary.peak[Tier::device]),
             summary.peak[Tier::device].count(), format_size(summary.peak[Tier::host]));
  fmt::print("  tasks            {} recomputed; {} moved out, {} back\n", summary.recomputed_tasks,
             format_size(summary.offloaded_bytes), format_size(summary.prefetched_bytes));
  fmt::print("  predicted step   {:.3g} s, {:.4g} images/s: {}\n", predicted,
             static_cast<double>(answer.batch) / predicted, source);
  if (fit.beyond.floor[Tier::device].is_zero())
    fmt::print("  one more         was not asked: {} is the most this search goes to\n", fit.size);
  else if (fit.beyond.short_of == Tier::device)
    fmt::print("  one more         needs {} bytes ({}), at {}\n", fit.beyond.floor[Tier::device].count(),
               format_size(fit.beyond.floor[Tier::device]), fit.beyond.bottleneck_task);
  else
    fmt::print("  one more         {}\n", infeasible_text(fit.beyond, arguments.planner.policy, answer.options));
  if (answer.keeps_parameters)
    fmt::print(
        "  parameters       on the device: in host memory without a limit any depth would fit; see --host-memory\n");
  if (!answer.is_largest)
    fmt::print("  still larger     may fit: what {} needs{} does not always grow with the size\n",
               arguments.planner.policy, answer.why_not);
  fmt::print("  searched         {} sizes in {:.2g} s; the plan took {:.2g} s and is checked\n", fit.asked, fit.seconds,
             fit.plan.plan_seconds);
}

int run(const FitArguments& arguments) {
  const std::unique_ptr<Target> target = arguments.cost.target(arguments.step);
  const Answer answer = search(arguments, *target);
  if (answer.fit.size == 0) {
    fmt::print(stderr, "tide: {} at {}: {}{}\n", arguments.model.model, answer.depth ? "n = 1" : "batch 1",
               infeasible_text(answer.fit.plan, arguments.planner.policy, answer.options),
               answer.keeps_parameters ? "; with --host-memory SIZE, parameters may rest there" : "");
    return kInfeasible;
  }
  const PlanSummary summary = summarize(*answer.fit.plan.plan);
  const double predicted = *answer.fit.plan.seconds;
  if (arguments.json)
    print_json(arguments, answer, summary, predicted);
  else
    print_text(arguments, answer, summary, predicted, target->source());
  return kDone;
}

}  // namespace

Command fit_command(CLI::App& root) {
  auto arguments = std::make_shared<FitArguments>();
  CLI::App* app =
      root.add_subcommand("fit", "How large a batch, or for resnet:6,32,?,6 how deep a net at --batch, a budget holds");
  arguments->model.add_to(*app);
  arguments->step.add_to(*app);
  arguments->budget.add_to(*app);
  arguments->planner.add_to(*app);
  arguments->cost.add_to(*app);
  app->add_option("--reserve", arguments->reserve, "Left free of the budget, such as 600MiB for a CUDA context")
      ->capture_default_str();
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments, app] {
            if (app->count("--batch") > 0 && !has_unknown(arguments->model.model))
              throw Error(
                  "--batch is what tide fit looks for; it goes with a model whose depth is asked for, such as "
                  "resnet:6,32,?,6");
            return run(*arguments);
          }};
}

}  // namespace tide
