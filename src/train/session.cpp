#include "train/session.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <thread>

#include "backend/nccl_collectives.h"
#include "base/stopwatch.h"
#include "executor/host_collectives.h"
#include "network/kind.h"
#include "plan/bind.h"
#include "planner/policy.h"
#include "planner/search/resting.h"
#include "planner/search/search.h"
#include "train/count_labels.h"
#include "train/persistent_places.h"
#include "train/share.h"

namespace tide {

namespace {

// A plan from a file was made for the budget, and with the permission, of that time.
void require_allowed(const Plan& plan, const SessionOptions& options) {
  if (plan.numerics > allowed_by(options.planner.batch))
    throw Error("the plan's numbers are {}; allow it with --allow {}, or plan again", numerics_name(plan.numerics),
                numerics_name(plan.numerics));
  const PlanSummary summary = summarize(plan);
  for (const TierRow& row : kTierTable) {
    const std::optional<Bytes>& budget = options.planner.memory[row.tier];
    if (budget && summary.peak[row.tier] > *budget)
      throw Error("the plan needs {} bytes of {} memory, the budget is {}; plan again for this budget",
                  summary.peak[row.tier].count(), row.name, budget->count());
  }
}

// What ranks can be told at once.
void require_possible(const SessionOptions& options) {
  const RankSettings& ranks = options.ranks;
  if (ranks.count() > 1 && ranks.shard != Shard::none && options.rules != Rules::minimal)
    throw Error("state is divided over ranks under the rules minimal alone");
  if (ranks.count() > 1 && ranks.shard == Shard::parameters &&
      !std::holds_alternative<WholeBatch>(options.planner.batch))
    throw Error(
        "batches that are cut by a plan and parameters that come from other ranks do not go together; use "
        "--shard optimizer, or leave --allow and --sub-batch out");
  if (ranks.parts() == 0) return;
  if (ranks.shard != Shard::none && ranks.leaves > 0 && options.optimizer.clip_norm > 0)
    throw Error("--shard and --clip sum over ranks in an order of their own; leave one out, or --fixed-order");
  if (ranks.leaves > 0 && !std::has_single_bit(static_cast<std::uint64_t>(ranks.leaves)))
    throw Error("{} leaves are not possible: a fixed order has 1, 2, 4, 8 ... of them", ranks.leaves);
  if (ranks.leaves > 0 && ranks.leaves % ranks.count() != 0)
    throw Error("{} leaves cannot be divided among {} ranks; use as many ranks as divide them", ranks.leaves,
                ranks.count());
  if (ranks.leaves > 0 && ranks.wire != DataType::f32)
    throw Error("sums in a fixed order are sums of floats; leave gradients in fp32");
  if (ranks.leaves > 0 && !options.deterministic)
    throw Error("sums in a fixed order take kernels whose bits do not change; leave --no-deterministic out");
  if (!std::holds_alternative<WholeBatch>(options.planner.batch))
    throw Error("batches that are cut by a plan and sums over all ranks' samples do not go together; leave one out");
  if (options.rules != Rules::minimal) throw Error("sums over all ranks' samples need the rules minimal");
}

}  // namespace

std::variant<std::unique_ptr<Session>, PlanResult> Session::open(NetworkPtr network,
                                                                 const std::vector<StepVariant>& variants,
                                                                 const SessionOptions& options,
                                                                 std::unique_ptr<Target> target) {
  require_possible(options);
  if (variants.empty()) throw Error("a session needs at least one step variant: is the data set empty?");
  if (!target) target = make_target(options);
  std::unique_ptr<Session> session(new Session(std::move(network), options, std::move(target)));
  session->offer_loans();
  session->stagger(variants);
  if (std::optional<PlanResult> too_small = session->plan_all(variants)) return *std::move(too_small);
  session->start_tuning();
  session->allocate();
  session->require_one_layout();
  session->initialize();
  return session;
}

std::optional<PlanResult> Session::plan_all(const std::vector<StepVariant>& variants) {
  const Policy& policy = find_policy(options_.policy);
  const StepVariant lead = lead_of(variants);
  const BuildStep build_lead = [&](const StepChoice& choice) { return build(lead, choice); };
  const Reserved reserved = reserve(*target_, build_lead, options_.planner);
  PlanningContext planner = reserved.planner;
  sends_ahead_ = reserved.sends_ahead;
  target_->cover(build_lead, planner.memory[Tier::device]);
  std::optional<PlanResult> too_small = plan_variants(policy, variants, planner);
  if (too_small && planner.memory[Tier::device] != options_.planner.memory[Tier::device]) {
    // So close to the floor there is nothing to reserve.
    sends_ahead_ = false;
    planner = options_.planner;
    too_small = plan_variants(policy, variants, planner);
  }
  if (too_small && planner.parameters == Parameters::automatic && policy.rests_parameters && !options_.plan) {
    // What the largest step can do without may be what another one needs.
    planner.parameters = Parameters::host;
    too_small = plan_variants(policy, variants, planner);
  }
  return too_small;
}

StepVariant Session::lead_of(const std::vector<StepVariant>& variants) const {
  const auto first_training = std::ranges::find_if(variants, &StepVariant::training);
  if (options_.plan && first_training != variants.end()) return *first_training;
  return *std::ranges::max_element(variants, {}, [](const StepVariant& v) { return std::pair(v.training, v.batch); });
}

Step Session::build(const StepVariant& variant, const StepChoice& choice) const {
  return target_->build(network_, step_options(variant, options_), choice);
}

std::optional<PlanResult> Session::plan_variant(const Policy& policy, const StepVariant& variant,
                                                PlanningContext& planner) {
  if (variants_.contains(variant)) return std::nullopt;
  const bool leads = variants_.empty();
  Plan plan;
  if (options_.plan && leads) {
    const StepOptions& made_for = options_.plan->phases.front().step->options;
    const bool early = !made_for.ranks.late_updates;
    const auto build_part = [&](std::int64_t samples, Part part) {
      return build(variant, {made_for.fuse_limit, samples, part, early});
    };
    plan = bind_plan(*options_.plan, build_part(0, Part::whole), build_part);
    require_allowed(plan, options_);
  } else {
    const CostModel& times = link_share_ ? static_cast<const CostModel&>(*link_share_) : cost();
    PlanResult result = search_plan(
        policy, [&](const StepChoice& choice) { return build(variant, choice); }, times, planner);
    if (!result.plan) return result;
    plan = *std::move(result.plan);
  }
  if (leads) {
    lead_ = variant;
    lead_context_ = planner;
  } else if (persistent_places(plan) != persistent_places(variants_.at(lead_).plan)) {
    throw Error("the plan keeps its parameters at other addresses than the steps planned here; plan without --plan");
  }
  planner.rest_in_host = rest_in_host(plan);
  variants_[variant].plan = std::move(plan);
  return std::nullopt;
}

std::optional<PlanResult> Session::plan_variants(const Policy& policy, const std::vector<StepVariant>& variants,
                                                 PlanningContext planner) {
  std::vector<StepVariant> training, evaluation;
  for (const StepVariant& variant : variants) (variant.training ? training : evaluation).push_back(variant);
  if (!options_.plan) std::ranges::stable_sort(training, std::greater());
  variants_.clear();
  for (const StepVariant& variant : training)
    if (std::optional<PlanResult> too_small = plan_variant(policy, variant, planner)) return too_small;
  return evaluation.empty() ? std::nullopt : plan_evaluation(policy, std::move(evaluation), planner);
}

std::optional<PlanResult> Session::plan_evaluation(const Policy& policy, std::vector<StepVariant> variants,
                                                   const PlanningContext& planner) {
  std::ranges::stable_sort(variants, std::greater());
  const auto plan_pieces = [&](PlanningContext pieces_planner) -> std::optional<PlanResult> {
    for (const StepVariant& variant : variants)
      for (const std::int64_t samples : pieces(variant.batch))
        if (std::optional<PlanResult> too_small = plan_variant(policy, {samples, false}, pieces_planner))
          return too_small;
    return std::nullopt;
  };
  at_once_ = variants.front().batch;
  while (true) {
    std::optional<PlanResult> too_small = plan_pieces(planner);
    if (!too_small || at_once_ == 1) return too_small;
    std::erase_if(variants_, [](const auto& planned) { return !planned.first.training; });
    at_once_ = (at_once_ + 1) / 2;
  }
}

std::vector<std::int64_t> Session::pieces(std::int64_t samples) const {
  std::vector<std::int64_t> result(static_cast<std::size_t>(samples / at_once_), at_once_);
  if (samples % at_once_ != 0) result.push_back(samples % at_once_);
  return result;
}

std::unique_ptr<Collectives> Session::make_collectives() {
  const bool only_host = ranks().leaves > 0 || ranks().wire != DataType::f32 || ranks().communicator->in_one_process();
  const bool possible = backend().name() == "cuda" && !only_host;
  if (ranks().road == SumRoad::nccl && !possible)
    throw Error("NCCL sums floats of GPUs, in an order of its own; use --reduce cpu, or --backend cuda");
  if (ranks().road == SumRoad::nccl || (ranks().road == SumRoad::automatic && possible && has_nccl()))
    return make_nccl_collectives(
        backend(), {.rank = ranks().rank(),
                    .ranks = ranks().count(),
                    .deterministic = options_.deterministic,
                    .hand_out = [this](std::span<std::byte> bytes) { ranks().communicator->broadcast(bytes, 0); }});
  Communicator& sums_over = ranks().sums_over != nullptr ? *ranks().sums_over : *ranks().communicator;
  return make_host_collectives(sums_over, backend(), {.wire = ranks().wire, .tree = ranks().leaves > 0});
}

void Session::allocate() {
  PerTier<Bytes> needed;
  for (const auto& [variant, planned] : variants_) {
    const PlanSummary summary = summarize(planned.plan);
    for (const TierRow& row : kTierTable) needed[row.tier] = std::max(needed[row.tier], summary.peak[row.tier]);
  }
  // Other triggers may take more of the budget.
  if (tuning_ && lead_context_.memory[Tier::device])
    needed[Tier::device] = std::max(needed[Tier::device], *lead_context_.memory[Tier::device]);
  const Bytes device = needed[Tier::device], host = needed[Tier::host], disk = needed[Tier::disk];
  const std::optional<Bytes>& budget = options_.planner.memory[Tier::device];
  // The room is for one of them, and as large as its plan's inputs, which may be more than the whole
  // batch's where that is cut.
  const Bytes room = sends_ahead_ ? ahead_bytes(find(lead_).plan) : Bytes();
  const bool ahead = !room.is_zero() && (!budget || device + room <= *budget);
  arena_ = std::make_unique<Arena>(backend(), ahead ? device + room : device);
  if (!host.is_zero()) host_ = std::make_unique<Arena>(backend(), host, Tier::host);
  if (!disk.is_zero()) disk_ = std::make_unique<SpillFile>(options_.spill_directory, disk);
  if (ranks().count() > 1) collectives_ = make_collectives();
  take_loans(needed);
  if (ahead) input_ahead_ = device;
  for (auto& [variant, planned] : variants_) planned.executor = executor_of(variant, planned.plan);
}

std::unique_ptr<Executor> Session::executor_of(const StepVariant& variant, const Plan& plan) const {
  ExecutorOptions executor = options_.executor;
  executor.collectives = collectives_.get();
  executor.observer = ranks().observer;
  if (variant == lead_) {
    if (input_ahead_) executor.input_ahead = *input_ahead_;
    executor.record = executor.record || (tuning_ && !tuning_->is_done());
  }
  Tiers tiers(*arena_, host_.get(), disk_.get(), lent_.get());
  tiers.peer = peer();
  return make_executor(plan, *target_->backend(), tiers, executor);
}

const Session::Planned& Session::find(const StepVariant& variant) const {
  const auto it = variants_.find(variant);
  if (it == variants_.end())
    throw Error("the session was not opened for {} steps of batch {}", variant.training ? "training" : "evaluation",
                variant.batch);
  return it->second;
}

Session::Planned& Session::find(const StepVariant& variant) {
  return const_cast<Planned&>(static_cast<const Session&>(*this).find(variant));
}

Executor::Metric Session::run(const StepVariant& variant, const Dataset& data, std::span<const std::int64_t> samples,
                              double learning_rate, std::span<const std::int64_t> next) {
  const int count = variant.training ? ranks().count() : 1;
  const std::int64_t first = variant.training ? ranks().rank() * variant.batch : 0;
  return run(variant, data, samples, learning_rate, next, {first, count * variant.batch});
}

Executor::Metric Session::run(const StepVariant& variant, const Dataset& data, std::span<const std::int64_t> samples,
                              double learning_rate, std::span<const std::int64_t> next, const GlobalBatch& global) {
  // Every rank has a step of its lead here, or none has. The plan changes before a step, so that behind it all is of
  // the plan that it had.
  const bool tunes = tuning_ && !tuning_->is_done() && variant == lead_ &&
                     global.samples == checked_multiply(variant.batch, ranks().count());
  if (tunes && whole_step_seconds_) tuning_->after_step(*whole_step_seconds_);
  Planned& planned = find(variant);
  Executor& executor = *planned.executor;
  if (static_cast<std::int64_t>(samples.size()) != variant.batch)
    throw Error("a step of batch {} was given {} samples", variant.batch, samples.size());
  if (data.sample().with_batch(variant.batch) != network_->input_sample().with_batch(variant.batch) ||
      data.labels_per_sample() != network_->labels_of_data())
    throw Error("{} takes samples of {} with {} labels, {} has {} with {}", network_->name,
                sample_text(network_->input_sample()), network_->labels_of_data(), data.name(),
                sample_text(data.sample()), data.labels_per_sample());
  if (planned.loaded_data != &data || !std::ranges::equal(planned.loaded, samples)) load(planned, data, samples);
  planned.loaded_data = nullptr;
  const std::int64_t answers = planned.answers;
  const Stopwatch watch;
  executor.start({.seed = options_.seed,
                  .step = steps_,
                  .learning_rate = learning_rate,
                  .update_count = static_cast<std::int64_t>(steps_) + 1,
                  .first_sample = global.first,
                  .global_batch = global.samples});
  if (executor.works_ahead() && static_cast<std::int64_t>(next.size()) == variant.batch) {
    load(planned, data, next);
    executor.send_ahead();
  }
  executor.finish();
  if (tunes) whole_step_seconds_ = watch.seconds();
  if (variant.training) ++steps_;
  Executor::Metric metric = executor.metric();
  metric.answers = static_cast<double>(answers);
  return metric;
}

void Session::load(Planned& planned, const Dataset& data, std::span<const std::int64_t> samples) const {
  planned.loaded_data = nullptr;
  const std::span<float> input = planned.executor->input();
  const std::span<std::int32_t> labels = planned.executor->labels();
  const std::size_t batch = samples.size();
  const auto read = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i)
      data.read(samples[i], input.subspan(i * (input.size() / batch), input.size() / batch),
                labels.subspan(i * (labels.size() / batch), labels.size() / batch));
  };
  // Beside a device of its own all cores are free for reading; small batches are not worth it.
  constexpr std::size_t kWorthIt = 1 << 20;
  const bool by_all = planned.executor->is_recorded() && input.size() >= kWorthIt;
  const std::size_t readers =
      by_all ? std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, batch) : std::size_t{1};
  std::vector<std::thread> threads;
  for (std::size_t r = 1; r < readers; ++r) threads.emplace_back(read, r * batch / readers, (r + 1) * batch / readers);
  read(0, batch / readers);
  for (std::thread& thread : threads) thread.join();
  planned.answers = count_labels(*network_, labels, static_cast<std::int64_t>(batch));
  planned.loaded_data = &data;
  planned.loaded.assign(samples.begin(), samples.end());
}

std::vector<StepVariant> Session::evaluation_variants(const Dataset& data, std::int64_t batch,
                                                      const RankSettings& ranks) {
  const std::int64_t global = checked_multiply(batch, ranks.count());
  std::vector<StepVariant> variants;
  if (data.size() >= global) variants.push_back({batch, false});
  const std::int64_t rest = share_of(data.size() % global, ranks.rank(), ranks.count()).count;
  if (rest != 0) variants.push_back({rest, false});
  if (variants.empty() && ranks.shard != Shard::none) variants.push_back({1, false});
  return variants;
}

std::vector<NamedTensor> Session::results(const StepVariant& variant) const {
  const Executor& executor = *find(variant).executor;
  const Step& step = executor.step();
  std::vector<NamedTensor> read;
  for (const TensorId id : step.results) {
    const Tensor& tensor = step.tensor(id);
    NamedTensor result{step.network->layer(tensor.layer).name, tensor.shape, {}};
    result.values.resize(static_cast<std::size_t>(tensor.shape.elements()));
    executor.read(id, result.values);
    read.push_back(std::move(result));
  }
  return read;
}

Session::Evaluation Session::evaluate(const Dataset& data, std::int64_t batch, const AnswerObserver& observer) {
  share_statistics();
  const std::int64_t global = checked_multiply(batch, ranks().count());
  std::vector<SampleRange> runs;
  for (std::int64_t first = 0; first < data.size(); first += global) {
    const SampleRange own = share_of(std::min(global, data.size() - first), ranks().rank(), ranks().count());
    std::int64_t sample = first + own.first;
    for (const std::int64_t count : pieces(own.count)) {
      runs.push_back({sample, count});
      sample += count;
    }
  }
  const std::int64_t idle = idle_steps(static_cast<std::int64_t>(runs.size()));
  // A mean over labels that count is weighed by how many those are.
  const bool has_gaps = std::ranges::any_of(loss_labels(*network_), &LossLabels::counted);
  std::array<double, 4> sums{};  // of losses, correct and all answers, what the losses are weighed by
  std::vector<std::int64_t> samples;
  std::vector<std::int32_t> labels;
  for (const SampleRange& range : runs)
    for (std::int64_t i = 0; i < range.count; ++i) samples.push_back(range.first + i);
  data.expect(samples);
  for (const SampleRange& range : runs) {
    samples.resize(static_cast<std::size_t>(range.count));
    std::iota(samples.begin(), samples.end(), range.first);
    const StepVariant variant{range.count, false};
    if (observer) {  // the step may put something else where labels lie
      Planned& planned = find(variant);
      load(planned, data, samples);
      const std::span<const std::int32_t> loaded = planned.executor->labels();
      labels.assign(loaded.begin(), loaded.end());
    }
    const Executor::Metric metric = run(variant, data, samples, 0);
    if (observer) observer({samples, results(variant), labels});
    const double weight = has_gaps ? metric.answers : static_cast<double>(range.count);
    sums[0] += metric.loss * weight;
    sums[1] += metric.correct;
    sums[2] += metric.answers;
    sums[3] += weight;
  }
  for (std::int64_t i = 0; i < idle; ++i) {
    const auto any = std::ranges::find_if(variants_, [](const auto& planned) { return !planned.first.training; });
    samples.assign(static_cast<std::size_t>(any->first.batch), 0);
    run(any->first, data, samples, 0);
  }
  if (ranks().count() > 1) ranks().communicator->all_reduce(sums);
  const auto by = [](double sum, double count) { return count > 0 ? sum / count : 0; };
  return {by(sums[0], sums[3]), has_answers(*network_) ? std::optional(by(sums[1], sums[2])) : std::nullopt};
}

// Where the parameters of a step come from all ranks, one that has fewer steps than others goes through some that do
// not count.
std::int64_t Session::idle_steps(std::int64_t own) const {
  if (!is_sharded() || ranks().shard != Shard::parameters) return 0;
  std::vector<std::int64_t> steps(static_cast<std::size_t>(ranks().count()), own);
  ranks().communicator->all_gather(std::as_writable_bytes(std::span(steps)));
  return std::ranges::max(steps) - own;
}

}  // namespace tide
