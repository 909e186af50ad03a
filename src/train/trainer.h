// The training loop: epochs of shuffled batches, the learning rate's schedule, evaluation
// after each epoch.
#pragma once

#include <atomic>

#include "train/schedule.h"
#include "train/session.h"

namespace tide {

struct TrainingOptions {
  std::int64_t batch = StepVariant{}.batch;  // of each rank
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  // above 0: stop after so many steps instead of epochs
  std::uint64_t seed = kSeed;
  Schedule schedule = {};  // train() fills in what is 0: the base rate, and total_steps of cosine
};

// Told of what happens, in order, on the training thread; what one does not care for need not be overridden.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  struct StepInfo {
    std::int64_t epoch = 0, step = 0, total_steps = 0;  // counted from 1
    double loss = 0, learning_rate = 0, images_per_second = 0;
  };
  virtual void on_step(const StepInfo& /*info*/) {}
  struct EpochInfo {
    std::int64_t epoch = 0;
    double loss = 0;                 // over the epoch's own steps
    std::optional<double> accuracy;  // where answers can be right
    std::optional<Session::Evaluation> validation;
    double seconds = 0;
  };
  virtual void on_epoch(const EpochInfo& /*info*/) {}
};

struct TrainingReport {
  std::int64_t steps = 0;
  double loss = 0;  // of the last step
  std::optional<Session::Evaluation> validation;
  double step_seconds = 0;  // median
  bool interrupted = false;
};

// The step variants that train() needs of its session; the first is the full batch.
[[nodiscard]] std::vector<StepVariant> training_variants(const TrainingOptions& options, const Dataset& train,
                                                         const Dataset* validation, const RankSettings& ranks = {});

// With several ranks a step is one of the global batch, the batches of all ranks together: rank r takes the r-th
// contiguous part of it. What observers and the report are told is of all of it. Where one rank is asked to stop, all
// do.
//
// Stops early, after a whole step, when `stop` becomes true. Throws an Error when the loss
// is no longer a number.
TrainingReport train(Session& session, const TrainingOptions& options, const Dataset& train, const Dataset* validation,
                     TrainingObserver& observer, const std::atomic<bool>& stop);
// The same to the end.
TrainingReport train(Session& session, const TrainingOptions& options, const Dataset& train, const Dataset* validation,
                     TrainingObserver& observer);
// And without a word.
TrainingReport train(Session& session, const TrainingOptions& options, const Dataset& train,
                     const Dataset* validation = nullptr);

}  // namespace tide
