#include "executor/executor.h"

#include <algorithm>

#include "executor/batch_executor.h"
#include "executor/rounds_executor.h"

namespace tide {
namespace {

Bytes host_top(const Plan& plan) {
  Bytes top;
  for (const Phase& phase : plan.phases)
    for (const Residency& r : phase.residencies)
      if (r.tier == Tier::host) top = std::max(top, r.address + aligned_bytes(phase, r));
  return top;
}

// One phase whose whole batch is one input.
bool is_one_batch(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  const auto is_input = [](const Tensor& tensor) {
    return tensor.tensor_class == TensorClass::input && tensor.role == Role::x;
  };
  return plan.phases.size() == 1 && phase.repeat == 1 && std::ranges::count_if(phase.step->tensors, is_input) <= 1;
}

// Whether the step, or round, behind this phase may be one of the same phase.
bool sends_ahead(const Plan& plan, const Phase& phase) { return is_one_batch(plan) || phase.repeat > 1; }

}  // namespace

std::unique_ptr<Executor> make_executor(const Plan& plan, Backend& backend, const Tiers& tiers,
                                        const ExecutorOptions& options) {
  if (is_one_batch(plan)) return std::make_unique<BatchExecutor>(plan, backend, tiers, options);
  return std::make_unique<RoundsExecutor>(plan, backend, tiers, options);
}

Bytes ahead_bytes(const Plan& plan) {
  Bytes most;
  for (const Phase& phase : plan.phases)
    if (sends_ahead(plan, phase)) most = std::max(most, input_bytes(*phase.step));
  return most;
}

Executor::Executor(const Plan& plan, Backend& backend, const Tiers& tiers, const ExecutorOptions& options) {
  // What rests in host memory does so from phase to phase.
  const Bytes host = host_top(plan);
  if (tiers.host == nullptr && !host.is_zero()) own_host_ = std::make_unique<Arena>(backend, host, Tier::host);
  Tiers shared = tiers;
  if (own_host_) shared.host = own_host_.get();
  for (const Phase& phase : plan.phases) {
    ExecutorOptions of_phase = options;
    if (!sends_ahead(plan, phase)) of_phase.input_ahead = {};
    phases_.push_back(std::make_unique<PhaseExecutor>(phase, backend, shared, of_phase));
    repeats_.push_back(phase.repeat);
  }
}

void Executor::run(const StepState& state) {
  start(state);
  finish();
}

Bytes Executor::high_water() const {
  Bytes highest;
  for (const auto& phase : phases_) highest = std::max(highest, phase->high_water());
  return highest;
}

Bytes Executor::total(Bytes (PhaseExecutor::*moved)() const) const {
  Bytes sum;
  for (std::size_t p = 0; p < phases_.size(); ++p) sum += (*phases_[p].*moved)() * repeats_[p];
  return sum;
}

}  // namespace tide
