// tide train: trains a network within a budget.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/command.h"
#include "cli/cost_options.h"
#include "cli/data.h"
#include "cli/link_rate.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cost/profile.h"
#include "plan/plan_json.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace tide {
namespace {

std::atomic<bool> stop_requested{false};  // set by the signal handler, which can reach nothing else

extern "C" void request_stop(int /*signal*/) { stop_requested.store(true, std::memory_order_relaxed); }

struct TrainArguments {
  ModelArguments model;
  BudgetArguments budget;
  StepArguments step;
  DataArguments data;
  PlannerArguments planner;
  std::int64_t epochs = 1, steps = 0;
  double learning_rate = 0.05;
  std::string schedule = "constant";
  std::int64_t warmup = 0, step_every = 0;
  double step_factor = 0.1;
  double label_smoothing = 0;
  std::vector<std::string> freeze;
  std::string plan, save, resume;
  std::string link, spill, profile;
  bool guard = false;
  bool json = false;
};

Schedule schedule_of(const TrainArguments& arguments) {
  Schedule schedule;
  if (arguments.schedule == "constant")
    schedule.kind = ScheduleKind::constant;
  else if (arguments.schedule == "step")
    schedule.kind = ScheduleKind::step;
  else if (arguments.schedule == "cosine")
    schedule.kind = ScheduleKind::cosine;
  else
    throw Error("unknown schedule '{}'; they are constant, step and cosine", arguments.schedule);
  if (!(arguments.learning_rate > 0)) throw Error("--lr {} is not a positive number", arguments.learning_rate);
  if (arguments.warmup < 0) throw Error("--warmup {} is negative", arguments.warmup);
  if (schedule.kind == ScheduleKind::step && arguments.step_every < 1)
    throw Error("--schedule step needs --step-every, in steps");
  schedule.base = arguments.learning_rate;
  schedule.warmup_steps = arguments.warmup;
  schedule.step_every = arguments.step_every;
  schedule.step_factor = arguments.step_factor;
  return schedule;
}

// The network with what the command line says about its layers.
NetworkPtr adapt(const NetworkPtr& original, const TrainArguments& arguments) {
  if (arguments.freeze.empty() && arguments.label_smoothing == 0) return original;
  if (!(arguments.label_smoothing >= 0 && arguments.label_smoothing < 1))
    throw Error("--label-smoothing {} is not in [0, 1)", arguments.label_smoothing);
  auto network = std::make_shared<Network>(*original);
  std::vector<bool> matched(arguments.freeze.size(), false);
  for (Layer& layer : network->layers) {
    if (layer.kind == LayerKind::softmax_cross_entropy) {
      SoftmaxOptions options = layer.as<SoftmaxOptions>();
      options.label_smoothing = arguments.label_smoothing;
      layer.options = options;
    }
    for (std::size_t i = 0; i < arguments.freeze.size(); ++i) {
      if (!layer.name.starts_with(arguments.freeze[i])) continue;
      matched[i] = true;
      layer.frozen = true;
    }
  }
  for (std::size_t i = 0; i < matched.size(); ++i)
    if (!matched[i])
      throw Error("--freeze '{}' matches no layer of {}; see tide summary", arguments.freeze[i], original->name);
  for (Parameter& parameter : network->parameters) parameter.frozen = true;
  for (const Layer& layer : network->layers)
    if (!layer.frozen)
      for (const ParameterId id : layer.parameters) network->parameters[id.index()].frozen = false;
  return network;
}

void save(const TrainArguments& arguments, const Session& session) {
  if (arguments.save.empty()) return;
  save_checkpoint(arguments.save, {session.network().name, session.steps_done(), arguments.data.seed, session.state()});
}

// A folder for spilling without a disk budget may be filled, but for a tenth.
void use_disk(const std::string& folder, SessionOptions& options) {
  options.spill_directory = folder;
  if (options.planner.memory[Tier::disk]) return;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error) throw Error("--spill {}: {}", folder, error.message());
  options.planner.memory[Tier::disk] = Bytes(static_cast<std::int64_t>(space.available / 10 * 9));
}

constexpr std::string_view kTotal = "total:";

// "auto" is the device's free memory where it has its own; "total:12GiB" includes what the context and
// the libraries take.
BudgetArguments resolve(BudgetArguments budget, const StepArguments& step) {
  if (budget.memory.starts_with(kTotal)) {
    const Bytes total = parse_size(budget.memory.substr(kTotal.size()));
    const std::optional<Bytes> used = step.make()->used_memory();  // the recorded step is planned for later
    if (!used)
      throw Error("--memory {} is for a device with memory of its own; use --backend cuda, or give a plain size",
                  budget.memory);
    if (*used >= total)
      throw Error("--memory {}: context and libraries alone take {}", budget.memory, format_size(*used));
    budget.memory = fmt::format("{}", (total - *used).count());
    return budget;
  }
  if (budget.memory != "auto") return budget;
  if (const std::optional<Bytes> free = step.make()->free_memory())
    budget.memory = fmt::format("{}", free->count() / 10 * 9);
  return budget;
}

int run(const TrainArguments& arguments) {
  if (arguments.epochs < 1) throw Error("--epochs {} is not possible; train for at least 1", arguments.epochs);
  if (arguments.steps < 0) throw Error("--steps {} is negative", arguments.steps);
  const NetworkPtr network = adapt(arguments.model.load(), arguments);
  if (!network->has_loss()) throw Error("{} has no loss layer, so it cannot be trained", network->name);
  const Split data = arguments.data.load(*network, arguments.step.batch);
  TrainingOptions options{arguments.step.batch, arguments.epochs, arguments.steps, arguments.data.seed,
                          schedule_of(arguments)};
  SessionOptions session_options;
  session_options.backend = arguments.step.backend_name();
  session_options.threads = arguments.step.threads;
  session_options.precision = arguments.step.precision_of_products();
  session_options.deterministic = arguments.step.deterministic;
  session_options.policy = arguments.planner.policy;
  session_options.planner = arguments.planner.options(resolve(arguments.budget, arguments.step));
  session_options.rules = arguments.step.rule_set();
  session_options.fuse = arguments.step.fuses();
  session_options.activations = arguments.step.activations();
  session_options.seed = arguments.data.seed;
  session_options.optimizer = arguments.step.optimizer_options();
  if (arguments.guard) session_options.executor.guard = true;
  if (!arguments.link.empty()) session_options.executor.link_bytes_per_second = parse_link_rate(arguments.link);
  // A device of its own is worth measuring; on a processor times drift with what else runs.
  session_options.measure =
      arguments.profile == "auto" || (arguments.profile.empty() && session_options.backend == "cuda");
  if (!arguments.profile.empty() && arguments.profile != "auto" && arguments.profile != "none")
    session_options.cost = load_profile(arguments.profile, session_options.executor.link_bytes_per_second);
  if (!arguments.spill.empty()) use_disk(arguments.spill, session_options);
  if (!arguments.plan.empty()) session_options.plan = load_plan(arguments.plan);

  const Dataset* const validation = data.validation.get();
  auto opened = Session::open(network, training_variants(options, *data.train, validation), session_options);
  if (const PlanResult* const result = std::get_if<PlanResult>(&opened)) {
    fmt::print(stderr, "tide: {}\n", infeasible_text(*result, arguments.planner.policy, session_options.planner));
    return kInfeasible;
  }
  Session& session = *std::get<std::unique_ptr<Session>>(opened);
  if (arguments.guard && !session.backend().host_addressable())
    throw Error("--guard looks into the device's memory, which cannot be done on {}; use --backend cpu",
                session.backend().name());
  if (!arguments.resume.empty()) {
    const Checkpoint checkpoint = load_checkpoint(arguments.resume);
    session.restore(checkpoint.tensors, checkpoint.steps);
  }

  const StepVariant full{arguments.step.batch, true};
  const PlanSummary summary = summarize(session.plan(full));
  const double predicted = simulate(session.plan(full), session.cost()).seconds;
  std::FILE* const out = arguments.json ? stderr : stdout;
  fmt::print(out, "{}: {} parameters, batch {}, {} on {}, backend {}\n", network->name, network->parameter_count(),
             arguments.step.batch, session.plan(full).policy, data.train->name(), session.backend().description());
  const std::int64_t samples = sub_batch_of(session.plan(full));
  if (samples < arguments.step.batch)
    fmt::print(out, "in sub-batches of {}: numerics {}\n", samples, numerics_name(session.plan(full).numerics));
  fmt::print(
      out, "planned peak {}{}{}{}\n", format_size(summary.peak[Tier::device]),
      session_options.planner.memory[Tier::device]
          ? fmt::format(" of {}", format_size(*session_options.planner.memory[Tier::device]))
          : "",
      session.host_bytes().is_zero() ? "" : fmt::format(", {} of host memory", format_size(session.host_bytes())),
      session.disk_bytes().is_zero() ? "" : fmt::format(", {} of disk", format_size(session.disk_bytes())));

  if (const std::string missing = missing_text(session.cost()); !missing.empty() && session_options.cost)
    fmt::print(stderr, "tide: planned with {}{}\n", arguments.profile, missing);

  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  TrainingReport report;
  {
    Progress progress(out);
    report = train(session, options, *data.train, validation, progress, stop_requested);
  }
  save(arguments, session);

  const Executor& executor = session.executor(full);
  const double images = report.step_seconds > 0 ? static_cast<double>(arguments.step.batch) / report.step_seconds : 0;
  const std::string hash = fmt::format("{:016x}", session.weights_hash());
  if (arguments.json) {
    nlohmann::ordered_json result{{"steps", report.steps},
                                  {"loss", report.loss},
                                  {"accuracy", report.validation ? nlohmann::ordered_json(report.validation->accuracy)
                                                                 : nlohmann::ordered_json(nullptr)},
                                  {"weights_hash", hash},
                                  {"planned_peak_bytes", summary.peak[Tier::device].count()},
                                  {"peak_bytes", executor.high_water().count()},
                                  {"step_seconds", report.step_seconds},
                                  {"predicted_step_seconds", predicted},
                                  {"images_per_second", images},
                                  {"offloaded_bytes", executor.copied_out().count()},
                                  {"prefetched_bytes", executor.copied_in().count()},
                                  {"recomputed_tasks", summary.recomputed_tasks},
                                  {"sub_batch", samples},
                                  {"numerics", numerics_name(session.plan(full).numerics)}};
    if (const std::optional<Bytes> used = session.backend().used_memory())
      result["device_bytes_in_use"] = used->count();
    fmt::print("{}\n", result.dump(2));
  } else {
    fmt::print("{} steps, {:.1f} img/s; peak {} bytes ({}), as planned: {}; weights {}\n", report.steps, images,
               executor.high_water().count(), format_size(executor.high_water()),
               executor.high_water() == summary.peak[Tier::device] ? "yes" : "no", hash);
    if (!arguments.save.empty()) fmt::print("saved to {}\n", arguments.save);
  }
  if (!report.interrupted) return kDone;
  fmt::print(stderr, "tide: interrupted after step {}{}\n", report.steps,
             arguments.save.empty() ? "; nothing was saved (use --save to keep a checkpoint)"
                                    : fmt::format("; go on with --resume {}", arguments.save));
  return kInterrupted;
}

}  // namespace

Command train_command(CLI::App& root) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* app = root.add_subcommand("train", "Train a network within a memory budget");
  arguments->model.add_to(*app);
  arguments->step.add_to(*app);
  arguments->budget.add_to(*app);
  arguments->data.add_to(*app);
  arguments->planner.add_to(*app);
  app->add_option("--epochs", arguments->epochs, "Passes over the data")->capture_default_str();
  app->add_option("--steps", arguments->steps, "Stop after so many steps instead");
  app->add_option("--lr", arguments->learning_rate, "Learning rate")->capture_default_str();
  app->add_option("--schedule", arguments->schedule, "constant, step or cosine")->capture_default_str();
  app->add_option("--warmup", arguments->warmup, "Steps over which the learning rate rises");
  app->add_option("--step-every", arguments->step_every, "Steps between drops of --schedule step");
  app->add_option("--step-factor", arguments->step_factor, "Factor of each drop")->capture_default_str();
  app->add_option("--label-smoothing", arguments->label_smoothing, "Weight taken from the right class for all");
  app->add_option("--freeze", arguments->freeze, "Do not train layers whose name begins so (repeatable)");
  app->add_option("--plan", arguments->plan, "Follow this plan (tide plan --save) instead of planning");
  app->add_option(
      "--profile", arguments->profile,
      "Plan with the measured times of this file (see tide profile); auto: measured now where no earlier run did (the "
      "default of cuda); none: modelled");
  app->add_option("--save", arguments->save, "Write a checkpoint here at the end, or when interrupted");
  app->add_option("--resume", arguments->resume, "Go on from this checkpoint");
  app->add_option("--spill", arguments->spill,
                  "What fits into neither memory goes to a file in this folder, which is gone when the program ends");
  app->add_option("--link", arguments->link,
                  "Slow down copies between device and host memory to this speed, such as 2GB/s, each way: shows on a "
                  "processor how a plan does behind a slower link, such as a graphics card's");
  app->add_flag("--guard", arguments->guard, "Canaries and poison around every tensor (always on in debug builds)");
  app->add_flag("--json", arguments->json, "End with one JSON object; everything else goes to stderr");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
