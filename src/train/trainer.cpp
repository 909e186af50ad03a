#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "base/stopwatch.h"

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
    const Stopwatch watch;
    EpochSums sums;
    while (done_ < total_ && done_ / per_epoch_ == epoch) {
      run_step(epoch, sums);
      report_.interrupted = stop_.load(std::memory_order_relaxed);
      if (report_.interrupted) return;
    }
    TrainingObserver::EpochInfo info{epoch + 1, sums.loss / sums.seen, sums.correct / sums.answers, std::nullopt,
                                     watch.seconds()};
    if (validation_ != nullptr) info.validation = session_.evaluate(*validation_, options_.batch);
    report_.validation = info.validation;
    observer_.on_epoch(info);
  }

  void run_step(std::int64_t epoch, EpochSums& sums) {
    const std::int64_t first = (done_ % per_epoch_) * options_.batch;
    const std::int64_t count = std::min(options_.batch, data_.size() - first);
    const double rate = learning_rate(schedule_, done_);
    const Stopwatch watch;
    const bool has_next = done_ + 1 < total_;
    const std::span<const std::int64_t> next = has_next ? samples_from(first + count) : std::span<std::int64_t>();
    const Metric metric = session_.run({count, true}, data_, samples_from(first), rate, next);
    const double seconds = watch.seconds();
    if (count == options_.batch) times_.push_back(seconds);
    ++done_;
    if (!std::isfinite(metric.loss))
      throw Error("the loss is {} after step {}: training has diverged; try a lower --lr, --warmup or --clip",
                  metric.loss, done_);
    report_.loss = metric.loss;
    sums.add(metric, count);
    observer_.on_step({epoch + 1, done_, total_, metric.loss, rate, static_cast<double>(count) / seconds});
  }

  // A batch of this epoch, or what is left of it.
  [[nodiscard]] std::span<const std::int64_t> samples_from(std::int64_t first) const {
    first = std::min(first, data_.size());
    const std::int64_t count = std::min(options_.batch, data_.size() - first);
    return std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }

  [[nodiscard]] Schedule schedule_of_all() const {
    Schedule schedule = options_.schedule;
    schedule.total_steps = total_;
    return schedule;
  }

  Session& session_;
  const TrainingOptions& options_;
  const Dataset& data_;
  const Dataset* validation_;
  TrainingObserver& observer_;
  const std::atomic<bool>& stop_;
  const std::int64_t per_epoch_ = (data_.size() + options_.batch - 1) / options_.batch;
  const std::int64_t total_ = options_.steps > 0 ? options_.steps : checked_multiply(options_.epochs, per_epoch_);
  const Schedule schedule_ = schedule_of_all();
  std::int64_t done_ = static_cast<std::int64_t>(session_.steps_done());
  std::vector<std::int64_t> order_;
  std::vector<double> times_;  // of whole batches
  TrainingReport report_;
};

}  // namespace

std::vector<StepVariant> training_variants(const TrainingOptions& options, const Dataset& train,
                                           const Dataset* validation) {
  if (options.batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", options.batch);
  if (train.size() < options.batch)
    throw Error("the batch of {} is larger than the training set of {} samples; use a smaller --batch", options.batch,
                train.size());
  std::vector<StepVariant> variants{{options.batch, true}};
  const std::int64_t per_epoch = (train.size() + options.batch - 1) / options.batch;
  const bool reaches_last = options.steps == 0 || options.steps >= per_epoch;
  if (train.size() % options.batch != 0 && reaches_last) variants.push_back({train.size() % options.batch, true});
  if (validation != nullptr)
    for (const StepVariant& variant : Session::evaluation_variants(*validation, options.batch))
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
