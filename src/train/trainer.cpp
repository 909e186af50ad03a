#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/median.h"
#include "base/stopwatch.h"
#include "base/tree_sum.h"
#include "network/kind.h"
#include "train/share.h"
#include "train/usual.h"

namespace tide {
namespace {

// What the steps of an epoch add up to.
struct EpochSums {
  double loss = 0, correct = 0, answers = 0, seen = 0;
  void add(const Metric& metric, std::int64_t samples) {
    loss += metric.loss * static_cast<double>(samples);
    seen += static_cast<double>(samples);
    correct += metric.correct;
    answers += metric.answers;
  }
};

// What fills whole batches, and as much of the rest as can be divided as they are.
std::int64_t used_samples(const Dataset& data, std::int64_t global, const RankSettings& ranks) {
  const std::int64_t rest = data.size() % global;
  return data.size() - rest + ranks.usable(rest);
}

class TrainingLoop {
 public:
  TrainingLoop(Session& session, const TrainingOptions& options, const Dataset& data, const Dataset* validation,
               TrainingObserver& observer, const std::atomic<bool>& stop)
      : session_(session), options_(options), data_(data), validation_(validation), observer_(observer), stop_(stop) {}

  TrainingReport run() {
    // A resumed session goes on where it stopped: same epoch, same batch, same rates.
    for (std::int64_t epoch = done_ / per_epoch_; done_ < total_ && !report_.interrupted; ++epoch) run_epoch(epoch);
    report_.steps = done_;
    report_.step_seconds = median(std::move(times_));
    return report_;
  }

 private:
  void run_epoch(std::int64_t epoch) {
    order_ = shuffled(data_.size(), options_.seed, static_cast<std::uint64_t>(epoch));
    if (data_.varies())
      for (std::int64_t& index : order_) index += checked_multiply(epoch, data_.size());
    data_.expect(own_rest());
    const Stopwatch watch;
    EpochSums sums;
    while (done_ < total_ && done_ / per_epoch_ == epoch) {
      run_step(epoch, sums);
      // Several ranks have agreed on it with the sums of the step.
      report_.interrupted = ranks_.count() == 1 ? stop_.load(std::memory_order_relaxed) : stops_;
      if (report_.interrupted) return;
    }
    TrainingObserver::EpochInfo info{epoch + 1, sums.loss / sums.seen, std::nullopt, std::nullopt, watch.seconds()};
    if (has_answers(session_.network())) info.accuracy = sums.answers > 0 ? sums.correct / sums.answers : 0;
    if (validation_ != nullptr) info.validation = session_.evaluate(*validation_, options_.batch);
    report_.validation = info.validation;
    observer_.on_epoch(info);
  }

  void run_step(std::int64_t epoch, EpochSums& sums) {
    const std::int64_t first = (done_ % per_epoch_) * global_;
    const std::int64_t count = std::min(global_, used_ - first);
    const SampleRange own = share_of(count, ranks_.rank(), ranks_.count());
    const double rate = learning_rate(schedule_, done_);
    const Stopwatch watch;
    const bool has_next = done_ + 1 < total_;
    const std::span<const std::int64_t> next = has_next ? own_samples(first + count) : std::span<std::int64_t>();
    // A rank without samples goes through a step of one that does not count, because the others wait for it.
    const bool idle = own.count == 0;
    const Metric own_metric = session_.run({idle ? 1 : own.count, true}, data_,
                                           idle ? samples_at(first, 1) : samples_at(first + own.first, own.count), rate,
                                           next, {own.first, idle ? 0 : count});
    const Metric metric = of_all_ranks(own_metric, own.count, count);
    const double seconds = watch.seconds();
    if (count == global_) times_.push_back(seconds);
    ++done_;
    if (!std::isfinite(metric.loss))
      throw Error("the loss is {} after step {}: training has diverged; try a lower --lr, --warmup or --clip",
                  metric.loss, done_);
    report_.loss = metric.loss;
    sums.add(metric, count);
    observer_.on_step({epoch + 1, done_, total_, metric.loss, rate, static_cast<double>(count) / seconds});
  }

  // Also agrees on stopping.
  Metric of_all_ranks(const Metric& own, std::int64_t own_samples, std::int64_t samples) {
    stops_ = stop_.load(std::memory_order_relaxed);
    if (ranks_.count() == 1) return own;
    const bool counts = own_samples > 0;
    std::array<double, 4> sums{counts ? own.loss_sum : 0, counts ? own.correct : 0, counts ? own.answers : 0,
                               stops_ ? 1.0 : 0.0};
    if (ranks_.leaves > 0) sums[0] = over_the_tree(sums[0]) / ranks_.count();  // of which all bring as much
    ranks_.communicator->all_reduce(sums);
    stops_ = sums[3] > 0;
    return {sums[0] / static_cast<double>(samples), sums[1], sums[2], sums[0]};
  }

  // A sum over the ranks that goes on with that over each rank's leaves.
  double over_the_tree(double own) {
    std::vector<double> sums(static_cast<std::size_t>(ranks_.count()), own);
    ranks_.communicator->all_gather(std::as_writable_bytes(std::span(sums)));
    return tree_sum(std::span(sums));
  }

  [[nodiscard]] std::span<const std::int64_t> samples_at(std::int64_t first, std::int64_t count) const {
    return std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }

  // Of a global batch of this epoch, or what is left of it.
  [[nodiscard]] std::span<const std::int64_t> own_samples(std::int64_t first) const {
    first = std::min(first, used_);
    const SampleRange own = share_of(std::min(global_, used_ - first), ranks_.rank(), ranks_.count());
    return samples_at(first + own.first, own.count);
  }

  // This rank's samples of the rest of the epoch, in their order.
  [[nodiscard]] std::vector<std::int64_t> own_rest() const {
    std::vector<std::int64_t> rest;
    const std::int64_t steps = std::min(per_epoch_ - done_ % per_epoch_, total_ - done_);
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::span<const std::int64_t> own = own_samples((done_ % per_epoch_ + step) * global_);
      rest.insert(rest.end(), own.begin(), own.end());
    }
    return rest;
  }

  [[nodiscard]] Schedule schedule_of_all() const {
    Schedule schedule = options_.schedule;
    schedule.total_steps = total_;
    if (schedule.base == 0) schedule.base = usual_learning_rate(session_.network(), session_.optimizer(), global_);
    return schedule;
  }

  Session& session_;
  const TrainingOptions& options_;
  const Dataset& data_;
  const Dataset* validation_;
  TrainingObserver& observer_;
  const std::atomic<bool>& stop_;
  const RankSettings& ranks_ = session_.ranks();
  const std::int64_t global_ = checked_multiply(options_.batch, ranks_.count());
  const std::int64_t used_ = used_samples(data_, global_, ranks_);  // of an epoch
  const std::int64_t per_epoch_ = (used_ + global_ - 1) / global_;
  const std::int64_t total_ = options_.steps > 0 ? options_.steps : checked_multiply(options_.epochs, per_epoch_);
  const Schedule schedule_ = schedule_of_all();
  std::int64_t done_ = static_cast<std::int64_t>(session_.steps_done());
  std::vector<std::int64_t> order_;
  std::vector<double> times_;  // of whole batches
  bool stops_ = false;
  TrainingReport report_;
};

}  // namespace

std::vector<StepVariant> training_variants(const TrainingOptions& options, const Dataset& train,
                                           const Dataset* validation, const RankSettings& ranks) {
  if (options.batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", options.batch);
  const std::int64_t global = checked_multiply(options.batch, ranks.count());
  if (train.size() < global)
    throw Error("the batch of {}{} is larger than the training set of {} samples; use a smaller --batch", global,
                ranks.count() > 1 ? fmt::format(" of all {} ranks", ranks.count()) : "", train.size());
  std::vector<StepVariant> variants{{options.batch, true}};
  if (ranks.parts() > 0 && global % ranks.parts() != 0)
    throw Error("the batch of {} of all ranks cannot be cut into {} equal parts; choose another --batch", global,
                ranks.parts());
  const std::int64_t used = used_samples(train, global, ranks);
  const std::int64_t per_epoch = (used + global - 1) / global;
  const bool reaches_last = options.steps == 0 || options.steps >= per_epoch;
  const std::int64_t rest = used % global;
  const StepVariant last{std::max<std::int64_t>(share_of(rest, ranks.rank(), ranks.count()).count, 1), true};
  if (rest != 0 && reaches_last && last != variants[0]) variants.push_back(last);
  if (validation != nullptr)
    for (const StepVariant& variant : Session::evaluation_variants(*validation, options.batch, ranks))
      variants.push_back(variant);
  return variants;
}

TrainingReport train(Session& session, const TrainingOptions& options, const Dataset& train, const Dataset* validation,
                     TrainingObserver& observer, const std::atomic<bool>& stop) {
  return TrainingLoop(session, options, train, validation, observer, stop).run();
}

TrainingReport train(Session& session, const TrainingOptions& options, const Dataset& train, const Dataset* validation,
                     TrainingObserver& observer) {
  const std::atomic<bool> never{false};
  return tide::train(session, options, train, validation, observer, never);
}

TrainingReport train(Session& session, const TrainingOptions& options, const Dataset& train,
                     const Dataset* validation) {
  TrainingObserver nobody;
  return tide::train(session, options, train, validation, nobody);
}

}  // namespace tide
