#include "step/assembler.h"

namespace tide {

void StepAssembler::update(ParameterId parameter, TensorId norm) {
  ParameterState& state = parameters_[parameter.index()];
  std::vector<NewOperand> operands{{Role::gradient, state.gradient}};
  if (norm.valid()) operands.push_back({Role::norm, norm});
  const bool first = state.first_moment.valid();
  const bool second = state.second_moment.valid();
  operands.push_back({Role::weight, state.value});
  if (first) operands.push_back({Role::first_moment, state.first_moment});
  if (second) operands.push_back({Role::second_moment, state.second_moment});
  operands.push_back({Role::weight, successor(state.value), Access::write});
  if (first) operands.push_back({Role::first_moment, successor(state.first_moment), Access::write});
  if (second) operands.push_back({Role::second_moment, successor(state.second_moment), Access::write});
  new_task(TaskKind::update, state.layer, 0, operands);
  allow_in_place(Role::weight, Role::weight);
  allow_in_place(Role::first_moment, Role::first_moment);
  allow_in_place(Role::second_moment, Role::second_moment);
}

void StepAssembler::update_all_clipped() {
  std::vector<NewOperand> operands;
  for (const ParameterState& state : parameters_)
    if (state.gradient.valid()) operands.push_back({Role::gradient, state.gradient});
  if (operands.empty()) return;
  const TensorId norm = new_tensor(TensorClass::saved_state, Shape{1, 1, 1, 1}, LayerId(), Role::norm);
  operands.push_back({Role::norm, norm, Access::write});
  new_task(TaskKind::norm, LayerId(0), 0, operands);
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (parameters_[p].gradient.valid()) update(ParameterId(p), norm);
}

}  // namespace tide
