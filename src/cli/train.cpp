// tide train: trains a network within a budget.
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/new_file.h"
#include "base/size_text.h"
#include "cli/command.h"
#include "cli/cost_options.h"
#include "cli/data.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "network/adapt.h"
#include "plan/plan_json.h"
#include "train/checkpoint.h"
#include "train/trainer.h"
#include "train/usual.h"
#include "train/watched.h"

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
  CostArguments cost;
  std::int64_t epochs = TrainingOptions{}.epochs, steps = TrainingOptions{}.steps;
  std::optional<double> learning_rate;  // none: what is usual for the network
  std::string schedule{schedule_name(Schedule{}.kind)};
  std::int64_t warmup = Schedule{}.warmup_steps, step_every = Schedule{}.step_every;
  double step_factor = Schedule{}.step_factor;
  double label_smoothing = SoftmaxOptions{}.label_smoothing;
  std::vector<std::string> freeze, rates;
  bool decay_weights_only = false;
  std::string plan, save, resume;
  std::int64_t save_every = 0;
  RankArguments ranks;
  std::string spill;
  bool guard = false;
  bool json = false;
};

Schedule schedule_of(const TrainArguments& arguments) {
  Schedule schedule;
  schedule.kind = schedule_from_name(arguments.schedule);
  if (arguments.warmup < 0) throw Error("--warmup {} is negative", arguments.warmup);
  if (schedule.kind == ScheduleKind::step && arguments.step_every < 1)
    throw Error("--schedule step needs --step-every, in steps");
  schedule.base = arguments.learning_rate.value();
  schedule.warmup_steps = arguments.warmup;
  schedule.step_every = arguments.step_every;
  schedule.step_factor = arguments.step_factor;
  return schedule;
}

// What the command line says about the network's layers.
AdaptOptions adapt_options(const TrainArguments& arguments) {
  AdaptOptions options{.freeze = arguments.freeze,
                       .decay_weights_only = arguments.decay_weights_only,
                       .label_smoothing = arguments.label_smoothing,
                       .soft_labels = arguments.data.mixup > 0};
  for (const std::string& text : arguments.rates) {
    const std::size_t equals = text.rfind('=');
    double factor = 0;
    const char* const end = text.data() + text.size();
    if (equals == std::string::npos || std::from_chars(text.data() + equals + 1, end, factor).ptr != end ||
        equals + 1 == text.size())
      throw Error("--rate '{}' is not LAYER=FACTOR, as in --rate features=0.1", text);
    options.rates.push_back({text.substr(0, equals), factor});
  }
  return options;
}

// By all ranks; the first one writes, with what the others have of the state.
void save(const TrainArguments& arguments, const Session& session, const Dataset& data, bool is_first) {
  if (arguments.save.empty() || (!is_first && !session.is_sharded())) return;
  std::vector<NamedTensor> state = session.state();
  if (is_first)
    save_checkpoint(arguments.save, {session.network().name, session.steps_done(), arguments.data.seed,
                                     std::move(state), data.class_names(), data.reading()});
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

SessionOptions session_options_of(const TrainArguments& arguments, const Target& target, const Ranks& ranks) {
  SessionOptions options;
  arguments.step.apply_to(options);
  options.policy = arguments.planner.policy;
  options.planner = arguments.planner.options(arguments.budget.resolve(target));
  options.seed = arguments.data.seed;
  if (arguments.guard) options.executor.guard = true;
  options.executor.link_bytes_per_second = arguments.cost.link_bytes_per_second();
  if (!arguments.spill.empty()) use_disk(arguments.spill, options);
  if (!arguments.plan.empty()) options.plan = load_plan(arguments.plan);
  options.ranks = ranks.settings();
  return options;
}

// What is known before the first step.
struct Job {
  const TrainArguments& arguments;
  Session& session;
  const Dataset& data;
  Ranks& ranks;
  StepVariant full{arguments.step.batch, true};
  const Plan& plan = session.plan(full);
  PlanSummary summary = summarize(plan);
  double predicted = simulate(plan, session.cost()).seconds;
};

void print_opening(std::FILE* out, const Job& job, const std::optional<Bytes>& memory) {
  const Session& session = job.session;
  const Network& network = session.network();
  const int ranks = job.ranks.count();
  fmt::print(out, "{}: {} parameters, batch {}{}, {} on {}, backend {}\n", network.name, network.parameter_count(),
             job.full.batch, ranks > 1 ? fmt::format(" on each of {} ranks", ranks) : "", job.plan.policy,
             job.data.name(), job.session.backend().description());
  const bool in_parts = job.plan.phases.front().step->options.ranks.parts > 0;  // of a fixed order
  if (const std::int64_t samples = sub_batch_of(job.plan); samples < job.full.batch && !in_parts)
    fmt::print(out, "in sub-batches of {}: numerics {}\n", samples, numerics_name(job.plan.numerics));
  fmt::print(
      out, "planned peak {}{}{}{}{}{}\n", format_size(job.summary.peak[Tier::device]),
      memory ? fmt::format(" of {}", format_size(*memory)) : "",
      session.host_bytes().is_zero() ? "" : fmt::format(", {} of host memory", format_size(session.host_bytes())),
      session.disk_bytes().is_zero() ? "" : fmt::format(", {} of disk", format_size(session.disk_bytes())),
      session.borrowed_bytes().is_zero() ? ""
                                         : fmt::format(", {} of other ranks", format_size(session.borrowed_bytes())),
      session.borrowed_device_bytes().is_zero()
          ? ""
          : fmt::format(", {} of other devices", format_size(session.borrowed_device_bytes())));
  if (!session.swaps().empty()) fmt::print(out, "swaps of the ranks: {}\n", session.swaps());
  fmt::print(out, "predicted step {:.3g} s, {}; learning rate {:.3g}\n", job.predicted, session.target().source(),
             job.arguments.learning_rate.value());
}

double images_per_second(const Job& job, const TrainingReport& report) {
  const auto samples = static_cast<double>(job.full.batch * job.ranks.count());
  return report.step_seconds > 0 ? samples / report.step_seconds : 0;
}

// Over all ranks, which all ask for it.
struct Peaks {
  Bytes planned, measured;  // the largest
  // Sums: of the memory that changed hands, and of what moves there and back in a step.
  Bytes lent, borrowed, sent_to_lenders, got_from_lenders;
  Bytes lent_device, borrowed_device, pushed_to_lenders, pulled_from_lenders;
};

Peaks peaks_of(const Job& job) {
  const auto largest = [&](Bytes own) {
    return Bytes(static_cast<std::int64_t>(job.ranks.largest(static_cast<double>(own.count()))));
  };
  const auto sum = [&](Bytes own) { return job.ranks.sum(own); };
  const Session& session = job.session;
  const Executor& executor = job.session.executor(job.full);
  // The plan of now: triggers of its swaps may have been corrected.
  return {.planned = largest(summarize(job.plan).peak[Tier::device]),
          .measured = largest(executor.high_water()),
          .lent = sum(session.lent_bytes()),
          .borrowed = sum(session.borrowed_bytes()),
          .sent_to_lenders = sum(executor.sent()),
          .got_from_lenders = sum(executor.received()),
          .lent_device = sum(session.lent_device_bytes()),
          .borrowed_device = sum(session.borrowed_device_bytes()),
          .pushed_to_lenders = sum(executor.pushed()),
          .pulled_from_lenders = sum(executor.pulled())};
}

void print_json(const Job& job, const TrainingReport& report, const Peaks& peaks, std::uint64_t weights) {
  using nlohmann::ordered_json;
  const Executor& executor = job.session.executor(job.full);
  ordered_json result{
      {"steps", report.steps},
      {"loss", report.loss},
      {"accuracy", report.validation && report.validation->accuracy ? ordered_json(*report.validation->accuracy)
                                                                    : ordered_json(nullptr)},
      {"weights_hash", fmt::format("{:016x}", weights)},
      {"planned_peak_bytes", peaks.planned.count()},
      {"peak_bytes", peaks.measured.count()},
      {"step_seconds", report.step_seconds},
      {"predicted_step_seconds", job.predicted},
      {"images_per_second", images_per_second(job, report)},
      {"offloaded_bytes", executor.copied_out().count()},
      {"prefetched_bytes", executor.copied_in().count()},
      {"recomputed_tasks", job.summary.recomputed_tasks},
      {"sub_batch", sub_batch_of(job.plan)},
      {"numerics", numerics_name(job.plan.numerics)}};
  if (job.ranks.count() > 1) {
    result["ranks"] = job.ranks.count();
    result["lent_bytes"] = peaks.lent.count();
    result["borrowed_bytes"] = peaks.borrowed.count();
    result["sent_to_lenders_bytes"] = peaks.sent_to_lenders.count();
    result["got_from_lenders_bytes"] = peaks.got_from_lenders.count();
    result["lent_device_bytes"] = peaks.lent_device.count();
    result["borrowed_device_bytes"] = peaks.borrowed_device.count();
    result["pushed_to_lenders_bytes"] = peaks.pushed_to_lenders.count();
    result["pulled_from_lenders_bytes"] = peaks.pulled_from_lenders.count();
  }
  if (!job.session.swaps().empty()) result["swaps"] = job.session.swaps();
  if (const TriggerTuning* const tuning = job.session.tuning())
    result["trigger_corrections"] = {{"tried", tuning->corrections()}, {"kept", tuning->kept()}};
  if (const std::optional<Bytes> used = job.session.backend().used_memory())
    result["device_bytes_in_use"] = used->count();
  fmt::print("{}\n", result.dump(2));
}

void print_text(const Job& job, const TrainingReport& report, const Peaks& peaks, std::uint64_t weights) {
  fmt::print("{} steps, {:.1f} img/s; peak {} bytes ({}), as planned: {}; weights {:016x}\n", report.steps,
             images_per_second(job, report), peaks.measured.count(), format_size(peaks.measured),
             peaks.measured == peaks.planned ? "yes" : "no", weights);
  if (const TriggerTuning* const tuning = job.session.tuning(); tuning != nullptr && tuning->corrections() > 0)
    fmt::print("swap-ins: {} corrections by measured steps, of which {} stayed\n", tuning->corrections(),
               tuning->kept());
  if (!job.arguments.save.empty()) fmt::print("saved to {}\n", job.arguments.save);
}

// A guard that the device cannot have is an error; a checkpoint to go on from is taken up.
void prepare(const TrainArguments& arguments, Session& session, const Ranks& ranks) {
  if (arguments.guard && !session.backend().host_addressable())
    throw Error("--guard looks into the device's memory, which cannot be done on {}; use --backend cpu",
                session.backend().name());
  if (arguments.resume.empty()) return;
  // The file need be on the first rank's machine alone.
  const Checkpoint checkpoint = ranks.is_first() ? load_checkpoint(arguments.resume) : Checkpoint{};
  session.restore_from_first(checkpoint.tensors, checkpoint.steps);
}

// Prints, and saves now and then.
class TrainProgress final : public TrainingObserver {
 public:
  TrainProgress(const TrainArguments& arguments, Session& session, const Dataset& data, Ranks& ranks, std::FILE* out)
      : arguments_(arguments),
        session_(session),
        data_(data),
        ranks_(ranks),
        progress_(ranks.is_first() ? out : nullptr, ranks.may_redraw()) {}

  void on_step(const StepInfo& info) override {
    if (ranks_.watch() != nullptr) ranks_.watch()->set_step(info.step + 1);  // the one that begins now
    progress_.on_step(info);
    const bool due = arguments_.save_every > 0 && info.step % arguments_.save_every == 0;
    if (!due || info.step >= info.total_steps) return;
    save(arguments_, session_, data_, ranks_.is_first());
    if (ranks_.watch() != nullptr) ranks_.watch()->set_advice(fmt::format("go on with --resume {}", arguments_.save));
  }
  void on_epoch(const EpochInfo& info) override { progress_.on_epoch(info); }

 private:
  const TrainArguments& arguments_;
  Session& session_;
  const Dataset& data_;
  Ranks& ranks_;
  Progress progress_;
};

TrainingReport train_until_stopped(const Job& job, const TrainingOptions& options, const Split& data, std::FILE* out) {
  std::signal(SIGINT, request_stop);
  if (job.ranks.watch() == nullptr) std::signal(SIGTERM, request_stop);  // it listens to that one itself
  if (job.ranks.watch() != nullptr)
    job.ranks.watch()->set_step(static_cast<std::int64_t>(job.session.steps_done()) + 1);
  TrainProgress progress(job.arguments, job.session, job.data, job.ranks, out);
  return train(job.session, options, *data.train, data.validation.get(), progress, stop_requested);
}

int finish(const Job& job, const TrainingReport& report) {
  const std::string& file = job.arguments.save;
  const Peaks peaks = peaks_of(job);
  const bool is_first = job.ranks.is_first();  // after finish() there are no ranks
  save(job.arguments, job.session, job.data, is_first);
  const std::uint64_t weights = is_first || job.session.is_sharded() ? job.session.weights_hash() : 0;
  if (is_first && job.arguments.json)
    print_json(job, report, peaks, weights);
  else if (is_first)
    print_text(job, report, peaks, weights);
  job.session.end_loans();
  job.ranks.finish();
  if (!report.interrupted) return kDone;
  if (is_first)
    fmt::print(stderr, "tide: interrupted after step {}{}\n", report.steps,
               file.empty() ? "; nothing was saved (use --save to keep a checkpoint)"
                            : fmt::format("; go on with --resume {}", file));
  return kInterrupted;
}

// What all ranks must have been told alike; memory, policy and threads are each rank's own affair.
std::vector<Ranks::Fact> facts_of(const TrainArguments& arguments, const Network& network, const Dataset& data,
                                  const Target& target) {
  const OptimizerOptions o = arguments.step.optimizer_options();
  return {{"the version", TIDE_VERSION},
          {"the label smoothing", fmt::format("{}", arguments.label_smoothing)},
          {"the network", fmt::format("{} ({:016x})", network.name, network.fingerprint())},
          {"the data", fmt::format("{} of {} samples", data.name(), data.size())},
          {"the batch", std::to_string(arguments.step.batch)},
          {"the epochs", std::to_string(arguments.epochs)},
          {"the steps", arguments.steps > 0 ? std::to_string(arguments.steps) : "as many as the epochs have"},
          {"the seed", std::to_string(arguments.data.seed)},
          {"the optimizer", std::string(optimizer_name(o.kind))},
          {"the momentum", fmt::format("{}", o.momentum)},
          {"the weight decay", fmt::format("{}", o.weight_decay)},
          {"what is trained how", fmt::format("{}; {}; {}", fmt::join(arguments.freeze, " "),
                                              fmt::join(arguments.rates, " "), arguments.decay_weights_only)},
          {"the gradient clipping", fmt::format("{}", o.clip_norm)},
          {"the learning rate", fmt::format("{}", arguments.learning_rate.value())},
          {"the schedule", arguments.schedule},
          {"the steps of warm-up", std::to_string(arguments.warmup)},
          {"the steps between drops", fmt::format("{} by {}", arguments.step_every, arguments.step_factor)},
          {"the precision", arguments.step.precision},
          {"the kind of backend", std::string(target.backend()->name())},
          {"the buckets",
           fmt::format("{} as {}",
                       arguments.ranks.bucket.empty() ? format_size(RankSettings{}.bucket) : arguments.ranks.bucket,
                       arguments.ranks.reduce_type)},
          {"the way to sum them",
           fmt::format("{}{}", arguments.ranks.reduce.empty() ? "of the backend" : arguments.ranks.reduce,
                       arguments.ranks.share_devices ? " with devices shared" : "")},
          {"what is sharded",
           fmt::format("{} from {} on", arguments.ranks.shard,
                       arguments.ranks.least_to_shard.empty() ? format_size(RankSettings{}.least_to_shard)
                                                              : arguments.ranks.least_to_shard)},
          {"the checkpoints",
           fmt::format("{}, {}, {}", arguments.resume.empty() ? "none to go on from" : "one to go on from",
                       arguments.save.empty() ? "none to write" : "one to write",
                       arguments.save_every > 0 ? fmt::format("every {} steps", arguments.save_every) : "at the end")},
          {"the staggering", arguments.ranks.stagger},
          {"the topology", arguments.ranks.topology.empty() ? "of the machine" : arguments.ranks.topology},
          {"the order of sums",
           arguments.ranks.leaves > 0 ? fmt::format("fixed, of {} leaves", arguments.ranks.leaves) : "any"},
          {"batch norm", arguments.ranks.sync_batch_norm ? "over all ranks" : "of each rank alone"}};
}

int train_on(Ranks& ranks, const TrainArguments& given) {
  TrainArguments arguments = given;
  // Hours before it is written, and by the first rank alone, whose machine may be the only one that has the folder.
  if (!given.save.empty() && ranks.is_first()) static_cast<void>(place_of_new_file(given.save));
  arguments.step.threads = ranks.threads(given.step.threads);
  ranks.take_gpu(arguments.step.backend_name() == "cuda");
  const Model model = arguments.model.open();
  NetworkPtr network = adapt(model.network, adapt_options(arguments));
  if (!network->has_loss()) throw Error("{} has no loss layer, so it cannot be trained", network->name);
  const Split data = arguments.data.load(*network, checked_multiply(arguments.step.batch, ranks.count()));
  if (data.train->has_gaps()) network = adapt(network, {.gaps_in_labels = true});
  if (!arguments.learning_rate)
    arguments.learning_rate = usual_learning_rate(*network, arguments.step.optimizer_options(),
                                                  checked_multiply(arguments.step.batch, ranks.count()));
  const TrainingOptions options{arguments.step.batch, arguments.epochs, arguments.steps, arguments.data.seed,
                                schedule_of(arguments)};
  std::unique_ptr<Target> target = arguments.cost.running_target(arguments.step);
  SessionOptions session_options = session_options_of(arguments, *target, ranks);
  ranks.require_same(facts_of(arguments, *network, *data.train, *target));
  ranks.require_own_gpu(target->backend()->pci_bus_id());
  std::unique_ptr<WatchedOps> watched;
  if (ranks.watch() != nullptr) {
    watched = std::make_unique<WatchedOps>(*ranks.watch(), target->cost());
    session_options.ranks.observer = watched.get();
    if (!given.resume.empty()) ranks.watch()->set_advice(fmt::format("go on with --resume {}", given.resume));
  }
  auto opened =
      Session::open(network, training_variants(options, *data.train, data.validation.get(), session_options.ranks),
                    session_options, std::move(target));
  if (const PlanResult* const result = std::get_if<PlanResult>(&opened)) {
    const std::string text = infeasible_text(*result, arguments.planner.policy, session_options.planner);
    ranks.fail(text, kInfeasible);
    fmt::print(stderr, "tide: {}\n", text);
    return kInfeasible;
  }
  Session& session = *std::get<std::unique_ptr<Session>>(opened);
  set_values(session, model);
  prepare(arguments, session, ranks);
  const Job job{arguments, session, *data.train, ranks};
  std::FILE* const out = ranks.out(arguments.json ? stderr : stdout);
  if (ranks.is_first())
    for (const std::string& note : model.notes) fmt::print(stderr, "tide: {}\n", note);
  print_opening(out, job, session_options.planner.memory[Tier::device]);
  return finish(job, train_until_stopped(job, options, data, out));
}

int run(const TrainArguments& arguments) {
  if (arguments.epochs < 1) throw Error("--epochs {} is not possible; train for at least 1", arguments.epochs);
  if (arguments.steps < 0) throw Error("--steps {} is negative", arguments.steps);
  if (arguments.save_every < 0) throw Error("--save-every {} is negative", arguments.save_every);
  if (arguments.learning_rate && !(*arguments.learning_rate > 0))
    throw Error("--lr {} is not a positive number", *arguments.learning_rate);
  if (arguments.save_every > 0 && arguments.save.empty())
    throw Error("--save-every needs --save, the file to write to");
  Ranks ranks(arguments.ranks, [] { request_stop(SIGTERM); });
  try {
    return train_on(ranks, arguments);
  } catch (const std::exception& error) {
    ranks.fail(error.what(), kFailed);
    throw;
  }
}

}  // namespace

Command train_command(CLI::App& root) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* app = root.add_subcommand("train", "Train a network within a memory budget");
  arguments->model.add_to(*app);
  arguments->model.add_weights_to(*app);
  arguments->step.add_to(*app);
  arguments->budget.add_to(*app);
  arguments->data.add_to(*app);
  arguments->planner.add_to(*app);
  arguments->cost.add_running_to(*app);
  arguments->ranks.add_to(*app);
  app->add_option("--epochs", arguments->epochs, "Passes over the data")->capture_default_str();
  app->add_option("--steps", arguments->steps, "Stop after so many steps instead");
  app->add_option("--lr", arguments->learning_rate,
                  "Learning rate; without it, what is usual for the network, the optimizer and the batch");
  app->add_option("--schedule", arguments->schedule, "constant, step or cosine")->capture_default_str();
  app->add_option("--warmup", arguments->warmup, "Steps over which the learning rate rises");
  app->add_option("--step-every", arguments->step_every, "Steps between drops of --schedule step");
  app->add_option("--step-factor", arguments->step_factor, "Factor of each drop")->capture_default_str();
  app->add_option("--label-smoothing", arguments->label_smoothing, "Weight taken from the right class for all");
  app->add_option("--freeze", arguments->freeze, "Do not train layers whose name begins so (repeatable)");
  app->add_option("--rate", arguments->rates,
                  "LAYER=FACTOR: layers whose name begins so learn at so many times the rate (repeatable)");
  app->add_flag("--decay-weights-only", arguments->decay_weights_only, "No weight decay of biases and normalizations");
  app->add_option("--plan", arguments->plan, "Follow this plan (tide plan --save) instead of planning");
  app->add_option("--save", arguments->save, "Write a checkpoint here at the end, or when interrupted");
  app->add_option("--save-every", arguments->save_every, "Write it every so many steps as well");
  app->add_option("--resume", arguments->resume, "Go on from this checkpoint");
  app->add_option("--spill", arguments->spill,
                  "What fits into neither memory goes to a file in this folder, which is gone when the program ends");
  app->add_flag("--guard", arguments->guard, "Canaries and poison around every tensor (always on in debug builds)");
  app->add_flag("--json", arguments->json, "End with one JSON object; everything else goes to stderr");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
