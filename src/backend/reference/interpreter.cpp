#include "backend/reference/interpreter.h"

#include <algorithm>

#include "backend/reference/run.h"

namespace tide {
namespace {

// The elements of a tensor that an operand's view shows.
struct Shown {
  std::size_t first, count;
};

Shown shown_by(const Step& step, const Operand& operand) {
  const std::int64_t bytes = element_bytes(step.tensor(operand.tensor).type);
  return {static_cast<std::size_t>(step.offset_of(operand).count() / bytes),
          static_cast<std::size_t>(step.shape_of(operand).elements())};
}

}  // namespace

ReferenceInterpreter::ReferenceInterpreter(StepPtr step) : step_(std::move(step)), values_(step_->tensors.size()) {}

void ReferenceInterpreter::set(TensorId tensor, std::vector<double> values) {
  const std::int64_t elements = step_->tensor(tensor).shape.elements();
  if (static_cast<std::int64_t>(values.size()) != elements)
    throw Error("{} has {} elements but was given {}", tensor_name(*step_, tensor), elements, values.size());
  values_[tensor.index()] = std::move(values);
}

const std::vector<double>& ReferenceInterpreter::get(TensorId tensor) const {
  if (values_[tensor.index()].empty()) throw Error("{} has no value yet", tensor_name(*step_, tensor));
  return values_[tensor.index()];
}

void ReferenceInterpreter::set_logical(TensorId tensor, const std::vector<double>& values) {
  std::vector<double> memory(values.size());
  const Tensor& of = step_->tensor(tensor);
  for_each_element(of.shape, of.order, [&](std::size_t from, std::size_t to) { memory.at(to) = values.at(from); });
  set(tensor, std::move(memory));
}

std::vector<double> ReferenceInterpreter::get_logical(TensorId tensor) const {
  const std::vector<double>& memory = get(tensor);
  std::vector<double> values(memory.size());
  const Tensor& of = step_->tensor(tensor);
  for_each_element(of.shape, of.order, [&](std::size_t to, std::size_t from) { values[to] = memory[from]; });
  return values;
}

void ReferenceInterpreter::run_task(TaskId task, const StepState& state) {
  const std::span<const Operand> all = step_->operands_of(task);
  std::vector<reference::Values> parts(all.size());  // of operands with a view
  std::vector<reference::Values*> operands;
  for (std::size_t i = 0; i < all.size(); ++i) {
    reference::Values& whole = values_[all[i].tensor.index()];
    if (all[i].access == Access::read) static_cast<void>(get(all[i].tensor));  // throws where it is missing
    if (all[i].view.valid() && (all[i].access == Access::read || adds(*step_, all[i]))) {
      const Shown part = shown_by(*step_, all[i]);
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(part.first);
      parts[i].assign(begin, begin + static_cast<std::ptrdiff_t>(part.count));
    }
    operands.push_back(all[i].view.valid() ? &parts[i] : &whole);
  }
  run_reference(*step_, task, operands, state);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].view.valid() || all[i].access == Access::read) continue;
    reference::Values& whole = values_[all[i].tensor.index()];
    whole.resize(static_cast<std::size_t>(step_->tensor(all[i].tensor).shape.elements()));
    std::copy(parts[i].begin(), parts[i].end(),
              whole.begin() + static_cast<std::ptrdiff_t>(shown_by(*step_, all[i]).first));
  }
}

void ReferenceInterpreter::run(const StepState& state) {
  for (std::uint32_t t = 0; t < step_->ordered_tasks; ++t) run_task(TaskId(t), state);
}

void ReferenceInterpreter::carry_over() {
  for (const Storage& storage : step_->storages)
    if (storage.persistent && storage.entry.valid() && storage.entry != storage.exit)
      values_[storage.entry.index()] = get(storage.exit);
}

}  // namespace tide
