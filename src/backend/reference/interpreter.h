// Runs whole steps in double precision, with every tensor's value kept apart: a tensor is
// a value here, whatever storage it shares. The oracle for whole networks.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace tide {

class ReferenceInterpreter {
 public:
  explicit ReferenceInterpreter(StepPtr step);

  // Activations in NHWC order, parameters in their logical order.
  void set(TensorId tensor, std::vector<double> values);
  // Throws if the tensor has no value yet.
  [[nodiscard]] const std::vector<double>& get(TensorId tensor) const;
  // The same in logical order (NCHW).
  void set_logical(TensorId tensor, const std::vector<double>& values);
  [[nodiscard]] std::vector<double> get_logical(TensorId tensor) const;

  void run_task(TaskId task, const StepState& state);
  // Every task of the step in order (replays are not).
  void run(const StepState& state);
  // What persistent storages hold at the end becomes what they hold at the start.
  void carry_over();

 private:
  StepPtr step_;
  std::vector<std::vector<double>> values_;  // by tensor; empty: no value
};

}  // namespace tide
