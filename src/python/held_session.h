// A training job that Python holds: the library's session, opened again where it is asked for a step that it was not
// planned for.
#pragma once

#include <mutex>
#include <set>

#include "batches.h"
#include "named_network.h"
#include "plans.h"

namespace tide::python {

class HeldSession {
 public:
  HeldSession(NamedNetwork network, std::set<StepVariant> variants, Settings settings);

  // All of these: REQUIRES the GIL, which is released while they compute.
  struct Metric {
    double loss = 0, correct = 0, answers = 0;
  };
  Metric step(nb::handle samples, nb::handle targets, double learning_rate);
  struct Evaluated {
    Session::Evaluation evaluation;
    std::map<std::string, FloatArray> answers;  // by layer
  };
  Evaluated evaluate(nb::handle samples, nb::handle targets, std::int64_t batch, bool answers);
  [[nodiscard]] nb::dict weights();
  void set_weights(const nb::dict& weights);
  // The optimizer's, by array and what they are.
  [[nodiscard]] nb::dict moments();
  void set_moments(const nb::dict& moments, std::uint64_t steps);
  void save(const std::string& path);
  void save_weights(const std::string& path);
  void load(const std::string& path, bool with_optimizer);
  [[nodiscard]] nb::dict memory();
  // The plan of one of its steps.
  [[nodiscard]] MadePlan plan(std::int64_t batch, bool training);
  [[nodiscard]] std::string weights_hash();
  [[nodiscard]] std::uint64_t steps_done();

  // Runs with the session, opened for these variants as well, and without the GIL.
  template <typename Work>
  auto with(const std::set<StepVariant>& variants, const Work& work) {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    ensure(variants);
    return work(*session_);
  }

  [[nodiscard]] const NamedNetwork& network() const { return network_; }
  [[nodiscard]] std::uint64_t seed() const { return settings_.session.seed; }

 private:
  // Throws tidepool.Infeasible where they do not fit; the session is as before then.
  void ensure(const std::set<StepVariant>& variants);
  [[nodiscard]] std::optional<PlanResult> open(const std::set<StepVariant>& variants);

  NamedNetwork network_;
  Settings settings_;
  std::set<StepVariant> variants_;
  std::unique_ptr<Session> session_;
  std::string source_;
  std::mutex mutex_;  // one step at a time
};

}  // namespace tide::python
