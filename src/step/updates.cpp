#include "step/assembler.h"

namespace tide {
namespace {

// Parameters up to this size are updated together, up to this many at a time.
constexpr std::int64_t kSmallBytes = 64 << 10;
constexpr std::size_t kTogether = 64;

}  // namespace

void StepAssembler::update(ParameterId parameter, TensorId norm) {
  const Bytes bytes = bytes_of(network_->parameters[parameter.index()].shape, DataType::f32);
  if (!step_.options.fuse || bytes > Bytes(kSmallBytes)) return new_update({&parameter, 1}, norm);
  small_.push_back(parameter);
  if (small_.size() == kTogether) update_together(norm);
}

void StepAssembler::update_together(TensorId norm) {
  if (!small_.empty()) new_update(small_, norm);
  small_.clear();
}

void StepAssembler::new_update(std::span<const ParameterId> parameters, TensorId norm) {
  std::vector<NewOperand> operands;
  // One operand of each parameter that has it.
  const auto add = [&](Role role, TensorId ParameterState::*tensor, Access access) {
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const TensorId id = parameters_[parameters[p].index()].*tensor;
      const ViewId view = role == Role::gradient ? parameters_[parameters[p].index()].view : ViewId();
      if (id.valid())
        operands.push_back(
            {role, access == Access::read ? id : successor(id), access, static_cast<std::int16_t>(p), view});
    }
  };
  add(Role::gradient, &ParameterState::gradient, Access::read);
  if (norm.valid()) operands.push_back({Role::norm, norm});
  for (const Access access : {Access::read, Access::write}) {
    add(Role::weight, &ParameterState::value, access);
    add(Role::first_moment, &ParameterState::first_moment, access);
    add(Role::second_moment, &ParameterState::second_moment, access);
  }
  new_task(TaskKind::update, parameters_[parameters[0].index()].layer, 0, operands);
  declare_in_place();
}

void StepAssembler::update_all() {
  // What rounds have added up is summed over the ranks only here.
  while (reduced_ < buckets_.size()) reduce(buckets_[reduced_]);
  std::vector<NewOperand> operands;
  for (const ParameterState& state : parameters_)
    if (state.gradient.valid()) operands.push_back({Role::gradient, state.gradient, Access::read, 0, state.view});
  if (operands.empty()) return;
  TensorId norm;
  if (step_.options.optimizer.clip_norm > 0) {
    norm = new_tensor(TensorClass::saved_state, Shape{1}, LayerId(), Role::norm);
    operands.push_back({Role::norm, norm, Access::write});
    new_task(TaskKind::norm, LayerId(0), 0, operands);
  }
  if (is_shared()) return update_reduced(buckets_.size(), norm);
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (parameters_[p].gradient.valid()) update(ParameterId(p), norm);
  update_together(norm);
}

}  // namespace tide
