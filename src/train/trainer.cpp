#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tide {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

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
  const std::int64_t per_epoch = (train.size() + options.batch - 1) / options.batch;
  const std::int64_t total = options.steps > 0 ? options.steps : checked_multiply(options.epochs, per_epoch);
  Schedule schedule = options.schedule;
  schedule.total_steps = total;

  TrainingReport report;
  std::vector<double> times;
  // A resumed session goes on where it stopped: same epoch, same batch, same rates.
  auto done = static_cast<std::int64_t>(session.steps_done());
  for (std::int64_t epoch = done / per_epoch; done < total && !report.interrupted; ++epoch) {
    const std::vector<std::int64_t> order = shuffled(train.size(), options.seed, static_cast<std::uint64_t>(epoch));
    const auto epoch_start = Clock::now();
    double loss = 0;
    double correct = 0;
    double answers = 0;
    double seen = 0;
    while (done < total && done / per_epoch == epoch) {
      const std::int64_t first = (done % per_epoch) * options.batch;
      const std::int64_t count = std::min(options.batch, train.size() - first);
      const double rate = learning_rate(schedule, done);
      const auto start = Clock::now();
      const auto batch_at = [&](std::int64_t from) {
        from = std::min(from, train.size());
        const std::int64_t size = done + 1 < total || from == first ? std::min(options.batch, train.size() - from) : 0;
        return std::span(order).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(size));
      };
      const Executor::Metric metric = session.run({count, true}, train, batch_at(first), rate, batch_at(first + count));
      const double seconds = seconds_since(start);
      if (count == options.batch) times.push_back(seconds);
      ++done;
      if (!std::isfinite(metric.loss))
        throw Error("the loss is {} after step {}: training has diverged; try a lower --lr, --warmup or --clip",
                    metric.loss, done);
      report.loss = metric.loss;
      loss += metric.loss * static_cast<double>(count);
      seen += static_cast<double>(count);
      correct += metric.correct;
      answers += metric.answers;
      observer.on_step({epoch + 1, done, total, metric.loss, rate, static_cast<double>(count) / seconds});
      if (stop.load(std::memory_order_relaxed)) {
        report.interrupted = true;
        break;
      }
    }
    if (report.interrupted) break;
    TrainingObserver::EpochInfo info{epoch + 1, loss / seen, correct / answers, std::nullopt,
                                     seconds_since(epoch_start)};
    if (validation != nullptr) info.validation = session.evaluate(*validation, options.batch);
    report.validation = info.validation;
    observer.on_epoch(info);
  }
  report.steps = done;
  report.step_seconds = median(std::move(times));
  return report;
}

}  // namespace tide
