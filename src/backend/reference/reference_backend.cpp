// The reference as a backend: floats in memory, doubles inside a task.
#include "backend/host_memory.h"
#include "backend/logical_order.h"
#include "backend/make.h"
#include "backend/reference/run.h"
#include "base/bfloat16.h"

namespace tide {
namespace {

using reference::Values;

template <typename Element>
void load_as(const std::byte* memory, Values& values) {
  const auto* elements = reinterpret_cast<const Element*>(memory);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(elements[i]);
}

template <typename Element>
void store_as(const Values& values, std::byte* memory) {
  auto* elements = reinterpret_cast<Element*>(memory);
  for (std::size_t i = 0; i < values.size(); ++i) elements[i] = static_cast<Element>(values[i]);
}

Values load(const Shape& shape, DataType type, const std::byte* memory) {
  Values values(static_cast<std::size_t>(shape.elements()));
  switch (type) {
    case DataType::f32: load_as<float>(memory, values); break;
    case DataType::i32: load_as<std::int32_t>(memory, values); break;
    case DataType::u8: load_as<std::uint8_t>(memory, values); break;
    case DataType::bf16: load_as<BFloat16>(memory, values); break;
  }
  return values;
}

void store(const Tensor& tensor, const Values& values, std::byte* memory) {
  switch (tensor.type) {
    case DataType::f32: return store_as<float>(values, memory);
    case DataType::i32: return store_as<std::int32_t>(values, memory);
    case DataType::u8: return store_as<std::uint8_t>(values, memory);
    case DataType::bf16: return store_as<BFloat16>(values, memory);
  }
}

// A batch norm makes y from its statistics as floats will keep them, so that its replay,
// which starts from those, gives the same bits.
void renormalize(const Step& step, TaskId task, std::vector<Values>& values, const StepState& state) {
  const TaskId replay = step.replay_of[task.index()];
  const TaskView view(step, task), again(step, replay);
  for (const Role role : {Role::mean, Role::inverse_deviation})
    for (double& value : values[view.written(role)]) value = static_cast<double>(static_cast<float>(value));
  std::vector<Values*> operands;
  for (const Operand& operand : again.operands()) {
    const bool made = operand.role == Role::mean || operand.role == Role::inverse_deviation || operand.role == Role::y;
    operands.push_back(
        &values[made ? view.written(operand.role) : view.read(operand.role, static_cast<std::size_t>(operand.index))]);
  }
  run_reference(step, replay, operands, state);
}

// All operands are copied out before any is written, so in-place results need no care.
void run(const Step& step, TaskId task, const Launch& launch) {
  const auto operands = step.operands_of(task);
  std::vector<Values> values(operands.size());
  std::vector<Values*> pointers;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].access != Access::write)
      values[i] = load(step.shape_of(operands[i]), step.tensor(operands[i].tensor).type, launch.operands[i]);
    pointers.push_back(&values[i]);
  }
  run_reference(step, task, pointers, *launch.state);
  const TaskView view(step, task);
  if (view.find_written(Role::mean) && view.find_written(Role::y)) renormalize(step, task, values, *launch.state);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].access != Access::read) store(step.tensor(operands[i].tensor), values[i], launch.operands[i]);
}

class ReferenceBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "reference"; }
  [[nodiscard]] std::string description() const override { return "reference f64"; }

  void annotate(Step& step) const override { step.backend = description(); }

  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t /*algorithm*/) override {
    return [&step, task](const Launch& launch) { run(step, task, launch); };
  }

  void write_tensor(const Step& step, TensorId id, std::span<const float> logical, std::byte* address) override {
    const Tensor& tensor = step.tensor(id);
    write_logical(tensor.shape, tensor.order, tensor.type, logical, address);
  }
  void read_tensor(const Step& step, TensorId id, const std::byte* address, std::span<float> logical) override {
    const Tensor& tensor = step.tensor(id);
    read_logical(tensor.shape, tensor.order, tensor.type, address, logical);
  }

  [[nodiscard]] std::byte* allocate(Bytes bytes) override { return tide::allocate_host(bytes); }
  void release(std::byte* memory, Bytes bytes) noexcept override { tide::release_host(memory, bytes); }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace tide
