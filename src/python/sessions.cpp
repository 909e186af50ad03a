// Sessions: steps on arrays, evaluation, weights, checkpoints.
#include "held_session.h"

namespace tide::python {
namespace {

void construct(HeldSession* self, const NamedNetwork& network, const std::vector<std::int64_t>& batches,
               const std::vector<std::int64_t>& evaluation_batches, bool answers, const nb::dict& options) {
  std::set<StepVariant> variants;
  for (const std::int64_t batch : batches) variants.insert({batch, true});
  for (const std::int64_t batch : evaluation_batches) variants.insert({batch, false});
  for (const StepVariant& variant : variants)
    if (variant.batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", variant.batch);
  Settings settings = settings_of(options);
  settings.session.keep_results = answers;
  new (self) HeldSession(network, std::move(variants), std::move(settings));
}

}  // namespace

void bind_sessions(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<HeldSession>(module, "Session", "A training job: a network, its parameters, its planned steps.")
      .def("__init__", &construct, "network"_a, "batches"_a, "evaluation_batches"_a, "answers"_a, "options"_a,
           nb::sig("def __init__(self, network: Network, batches: list[int], evaluation_batches: list[int], "
                   "answers: bool, options: dict) -> None"))
      .def(
          "step",
          [](HeldSession& self, nb::handle samples, nb::handle targets, double learning_rate) {
            const HeldSession::Metric metric = self.step(samples, targets, learning_rate);
            return nb::make_tuple(metric.loss, metric.correct, metric.answers);
          },
          "samples"_a, "targets"_a.none(), "learning_rate"_a,
          nb::sig(
              "def step(self, samples: object, targets: object, learning_rate: float) -> tuple[float, float, float]"))
      .def(
          "evaluate",
          [](HeldSession& self, nb::handle samples, nb::handle targets, std::int64_t batch, bool answers) {
            HeldSession::Evaluated evaluated = self.evaluate(samples, targets, batch, answers);
            nb::dict by_layer;
            for (auto& [layer, values] : evaluated.answers) by_layer[layer.c_str()] = std::move(values);
            return nb::make_tuple(evaluated.evaluation.loss, evaluated.evaluation.accuracy, by_layer);
          },
          "samples"_a, "targets"_a.none(), "batch"_a = 0, "answers"_a = false,
          nb::sig("def evaluate(self, samples: object, targets: object, batch: int = 0, answers: bool = False) -> "
                  "tuple[float, float | None, dict]"))
      .def("weights", &HeldSession::weights, nb::sig("def weights(self) -> dict"))
      .def("set_weights", &HeldSession::set_weights, "weights"_a,
           nb::sig("def set_weights(self, weights: dict) -> None"))
      .def("moments", &HeldSession::moments, nb::sig("def moments(self) -> dict"))
      .def("set_moments", &HeldSession::set_moments, "moments"_a, "steps"_a,
           nb::sig("def set_moments(self, moments: dict, steps: int) -> None"))
      .def("save", &HeldSession::save, "path"_a)
      .def("save_weights", &HeldSession::save_weights, "path"_a)
      .def("load", &HeldSession::load, "path"_a, "with_optimizer"_a = true)
      .def("plan", &HeldSession::plan, "batch"_a, "training"_a = true)
      .def_prop_ro("memory", &HeldSession::memory, nb::sig("def memory(self) -> dict[str, int]"))
      .def_prop_ro("weights_hash", &HeldSession::weights_hash)
      .def_prop_ro("steps_done", &HeldSession::steps_done)
      .def_prop_ro("network", &HeldSession::network);
}

}  // namespace tide::python
