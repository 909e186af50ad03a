#include <algorithm>

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

TensorId StepAssembler::clipping_norm() {
  const auto norm_of = [&](std::vector<NewOperand> operands) {
    const TensorId norm = new_tensor(TensorClass::saved_state, Shape{1}, LayerId(), Role::norm);
    operands.push_back({Role::norm, norm, Access::write});
    new_task(TaskKind::norm, LayerId(0), 0, operands);
    return norm;
  };
  std::vector<NewOperand> whole, shares;
  for (const ParameterState& state : parameters_)
    if (state.gradient.valid() && !state.in_bucket)
      whole.push_back({Role::gradient, state.gradient, Access::read, 0, state.view});
  for (const Bucket& bucket : buckets_)
    if (bucket.sharded) shares.push_back({Role::gradient, bucket.gradient_share});
  if (shares.empty()) return norm_of(std::move(whole));
  const TensorId of_shares = sum_over_ranks(norm_of(std::move(shares)));
  if (whole.empty()) return of_shares;
  const TensorId of_whole = norm_of(std::move(whole));
  const TensorId norm = new_tensor(TensorClass::saved_state, Shape{1}, LayerId(), Role::norm);
  new_task(
      TaskKind::sum_gradients, LayerId(0), 0,
      {{Role::x, of_shares, Access::read, 0}, {Role::x, of_whole, Access::read, 1}, {Role::y, norm, Access::write}});
  return norm;
}

void StepAssembler::update_all() {
  // What rounds have added up is summed over the ranks only here.
  while (reduced_ < buckets_.size()) reduce(buckets_[reduced_]);
  const bool any = std::ranges::any_of(parameters_, [](const ParameterState& state) { return state.gradient.valid(); });
  if (!any) return;
  const TensorId norm = step_.options.optimizer.clip_norm > 0 ? clipping_norm() : TensorId();
  if (is_shared()) return update_reduced(buckets_.size(), norm);
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (parameters_[p].gradient.valid()) update(ParameterId(p), norm);
  update_together(norm);
}

}  // namespace tide
