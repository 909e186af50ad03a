// The training loop over data that the library reads by itself, with Python told of each step and epoch.
#include "data.h"
#include "errors.h"
#include "held_session.h"

namespace tide::python {
namespace {

nb::dict evaluation_row(const std::optional<Session::Evaluation>& evaluation) {
  nb::dict row;
  if (!evaluation) return row;
  row["loss"] = evaluation->loss;
  row["accuracy"] = nb::cast(evaluation->accuracy);
  return row;
}

class Callbacks final : public TrainingObserver {
 public:
  Callbacks(nb::object on_step, nb::object on_epoch) : on_step_(std::move(on_step)), on_epoch_(std::move(on_epoch)) {}

  // Ctrl-C is looked for here, between two steps, so that the session is whole when it is raised.
  void on_step(const StepInfo& info) override {
    const nb::gil_scoped_acquire python;
    check_signals();
    if (on_step_.is_none()) return;
    nb::dict row;
    row["epoch"] = info.epoch;
    row["step"] = info.step;
    row["total_steps"] = info.total_steps;
    row["loss"] = info.loss;
    row["learning_rate"] = info.learning_rate;
    row["images_per_second"] = info.images_per_second;
    on_step_(row);
  }
  void on_epoch(const EpochInfo& info) override {
    const nb::gil_scoped_acquire python;
    if (on_epoch_.is_none()) return;
    nb::dict row;
    row["epoch"] = info.epoch;
    row["loss"] = info.loss;
    row["accuracy"] = nb::cast(info.accuracy);
    row["validation"] = info.validation ? nb::object(evaluation_row(info.validation)) : nb::none();
    row["seconds"] = info.seconds;
    on_epoch_(row);
  }

 private:
  nb::object on_step_, on_epoch_;
};

struct LoopWords {
  std::int64_t batch = 0, epochs = 1, steps = 0;
  double learning_rate = 0;
  std::string schedule = "constant";
  std::int64_t warmup = 0, step_every = 0;
  double step_factor = 0.1;
};

nb::dict train_loop(HeldSession& held, const Data& data, const LoopWords& words, const nb::object& on_step,
                    const nb::object& on_epoch) {
  TrainingOptions options;
  options.batch = words.batch;
  options.epochs = words.epochs;
  options.steps = words.steps;
  options.seed = held.seed();
  options.schedule.kind = schedule_from_name(words.schedule);
  options.schedule.base = words.learning_rate;
  options.schedule.warmup_steps = words.warmup;
  options.schedule.step_every = words.step_every;
  options.schedule.step_factor = words.step_factor;
  const std::vector<StepVariant> variants = training_variants(options, *data.split.train, data.split.validation.get());
  Callbacks observer(on_step, on_epoch);
  const TrainingReport report = held.with({variants.begin(), variants.end()}, [&](Session& session) {
    return train(session, options, *data.split.train, data.split.validation.get(), observer);
  });
  nb::dict row;
  row["steps"] = report.steps;
  row["loss"] = report.loss;
  row["validation"] = report.validation ? nb::object(evaluation_row(report.validation)) : nb::none();
  row["step_seconds"] = report.step_seconds;
  return row;
}

nb::dict evaluate_data(HeldSession& held, const Data& data, std::int64_t batch) {
  const Dataset& of = data.split.validation ? *data.split.validation : *data.split.train;
  const std::vector<StepVariant> variants = Session::evaluation_variants(of, batch);
  return evaluation_row(
      held.with({variants.begin(), variants.end()}, [&](Session& session) { return session.evaluate(of, batch); }));
}

}  // namespace

void bind_training(nb::module_& module) {
  using namespace nb::literals;
  module.def(
      "usual_rate",
      [](const NamedNetwork& network, std::int64_t batch, const nb::dict& options) {
        return usual_learning_rate(*network.network(), settings_of(options).session.optimizer, batch);
      },
      "network"_a, "batch"_a, "options"_a,
      nb::sig("def usual_rate(network: Network, batch: int, options: dict) -> float"));
  module.def(
      "train",
      [](HeldSession& session, const Data& data, std::int64_t batch, std::int64_t epochs, std::int64_t steps,
         double learning_rate, const std::string& schedule, std::int64_t warmup, std::int64_t step_every,
         double step_factor, const nb::object& on_step, const nb::object& on_epoch) {
        return train_loop(session, data,
                          {batch, epochs, steps, learning_rate, schedule, warmup, step_every, step_factor}, on_step,
                          on_epoch);
      },
      "session"_a, "data"_a, nb::kw_only(), "batch"_a, "epochs"_a, "steps"_a, "learning_rate"_a, "schedule"_a,
      "warmup"_a, "step_every"_a, "step_factor"_a, "on_step"_a = nb::none(), "on_epoch"_a = nb::none(),
      nb::sig("def train(session: Session, data: Data, *, batch: int, epochs: int, steps: int, learning_rate: float, "
              "schedule: str, warmup: int, step_every: int, step_factor: float, on_step: object = None, on_epoch: "
              "object = None) -> dict"));
  module.def("evaluate_data", &evaluate_data, "session"_a, "data"_a, "batch"_a,
             nb::sig("def evaluate_data(session: Session, data: Data, batch: int) -> dict[str, float]"));
}

}  // namespace tide::python
