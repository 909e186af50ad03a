#include "backend/reference/interpreter.h"

#include "backend/reference/run.h"

namespace tide {
namespace {

// Calls visit(logical index, memory index); only activations have two orders.
template <typename Visit>
void for_each_element(const Tensor& tensor, Visit visit) {
  const bool plain = tensor.parameter.valid();
  const reference::Grid grid{tensor.shape};
  std::size_t logical = 0;
  for (std::int64_t n = 0; n < tensor.shape.batch(); ++n)
    for (std::int64_t c = 0; c < tensor.shape.channels(); ++c)
      for (std::int64_t h = 0; h < tensor.shape.height(); ++h)
        for (std::int64_t w = 0; w < tensor.shape.width(); ++w, ++logical)
          visit(logical, plain ? logical : grid.at(n, c, h, w));
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
  for_each_element(step_->tensor(tensor), [&](std::size_t from, std::size_t to) { memory.at(to) = values.at(from); });
  set(tensor, std::move(memory));
}

std::vector<double> ReferenceInterpreter::get_logical(TensorId tensor) const {
  const std::vector<double>& memory = get(tensor);
  std::vector<double> values(memory.size());
  for_each_element(step_->tensor(tensor), [&](std::size_t to, std::size_t from) { values[to] = memory[from]; });
  return values;
}

void ReferenceInterpreter::run_task(TaskId task, const StepState& state) {
  std::vector<reference::Values*> operands;
  for (const Operand& operand : step_->operands_of(task)) {
    if (operand.access == Access::read) static_cast<void>(get(operand.tensor));  // throws where it is missing
    operands.push_back(&values_[operand.tensor.index()]);
  }
  run_reference(*step_, task, operands, state);
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
