#include "executor/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace tide {

Executor::Executor(const Plan& plan, Backend& backend, Arena& arena, const ExecutorOptions& options)
    : backend_(backend), arena_(arena), phase_(&plan.phases.front()), record_(options.record) {
  if (plan.phases.size() != 1 || phase_->repeat != 1)
    throw Error("the plan has several rounds, which this executor does not run; plan with one batch per step");
  Bytes device, host;
  for (const Residency& r : phase_->residencies) {
    Bytes& top = r.tier == Tier::device ? device : host;
    top = std::max(top, r.address + aligned_bytes(*phase_, r));
    if (r.tier == Tier::disk) throw Error("the plan spills to disk, which this executor does not do; plan with more host memory");
  }
  for (const Op& op : phase_->ops)
    if (op.kind == OpKind::run)
      device = std::max(device, op.workspace + phase_->step->algorithms_of(op.task)[op.algorithm].workspace.aligned());
  if (device > arena_.size())
    throw Error("the plan needs {} bytes of device memory, the arena has {}", device.count(), arena_.size().count());
  host_ = std::make_unique<std::byte[]>(host.size());
  prepare();
  if (options.guard) {
    std::vector<std::byte*> stays, workspaces;
    for (const Residency& r : phase_->residencies) stays.push_back(locate(r));
    for (const Op& op : phase_->ops) workspaces.push_back(arena_.at(op.workspace));
    guard_ = std::make_unique<Guard>(*phase_, std::move(stays), std::move(workspaces));
  }
  if (record_) timeline_.spans.resize(ops_.size());
}

std::byte* Executor::locate(const Residency& residency) const {
  return residency.tier == Tier::device ? arena_.at(residency.address) : host_.get() + residency.address.size();
}

void Executor::prepare() {
  const Step& step = *phase_->step;
  const std::size_t count = phase_->ops.size();
  entry_.resize(step.storages.size());
  // Where each storage is, op by op.
  std::vector<std::vector<std::uint32_t>> begins(count);
  std::vector<std::byte*> device(step.storages.size()), host(step.storages.size());
  std::vector<Bytes> tops(count);
  const auto enter = [&](const Residency& r) {
    (r.tier == Tier::device ? device : host)[r.storage.index()] = locate(r);
  };
  for (std::uint32_t r = 0; r < phase_->residencies.size(); ++r) {
    const Residency& residency = phase_->residencies[r];
    const Bytes end = residency.tier == Tier::device ? residency.address + aligned_bytes(*phase_, residency) : Bytes();
    if (residency.first == kEntry) {
      enter(residency);
      entry_[residency.storage.index()] = locate(residency);
      entry_top_ = std::max(entry_top_, end);
    } else {
      const auto first = static_cast<std::size_t>(residency.first);
      begins[first].push_back(r);
      tops[first] = std::max(tops[first], end);
    }
  }

  ops_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Op& op = phase_->ops[i];
    Prepared& prepared = ops_[i];
    for (const std::uint32_t r : begins[i]) enter(phase_->residencies[r]);
    prepared.top = tops[i];
    if (op.kind == OpKind::copy) {
      const auto address = [&](Tier tier) { return (tier == Tier::device ? device : host)[op.storage.index()]; };
      prepared.copy_from = address(op.from);
      prepared.copy_to = address(op.to);
      prepared.copy_bytes = step.storage(op.storage).bytes;
      prepared.to = op.to;
      continue;
    }
    prepared.kernel = backend_.prepare(step, op.task, op.algorithm);
    prepared.first_address = static_cast<std::uint32_t>(addresses_.size());
    for (const Operand& operand : step.operands_of(op.task))
      addresses_.push_back(device[step.tensor(operand.tensor).storage.index()]);
    const Bytes workspace = step.algorithms_of(op.task)[op.algorithm].workspace;
    if (workspace.is_zero()) continue;
    prepared.workspace = arena_.at(op.workspace);
    prepared.top = std::max(prepared.top, op.workspace + workspace.aligned());
  }
}

void Executor::run_op(const Prepared& op, const StepState& state) {
  high_water_ = std::max(high_water_, op.top);
  if (op.kernel) {
    op.kernel(Launch{addresses_.data() + op.first_address, op.workspace, &state});
    return;
  }
  std::memcpy(op.copy_to, op.copy_from, op.copy_bytes.size());
  (op.to == Tier::device ? copied_in_ : copied_out_) += op.copy_bytes;
}

void Executor::run(const StepState& state) {
  using Clock = std::chrono::steady_clock;
  high_water_ = std::max(high_water_, entry_top_);
  copied_out_ = copied_in_ = Bytes();
  if (guard_) guard_->begin_step();
  const auto start = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (guard_) guard_->before(i);
    const double begin = record_ ? now() : 0;
    run_op(ops_[i], state);
    if (record_) timeline_.spans[i] = {static_cast<std::int32_t>(i), begin, now()};
    if (guard_) guard_->after(i);
  }
  timeline_.seconds = now();
  if (guard_) guard_->end_step();
}

std::byte* Executor::entry_address(StorageId storage) const {
  std::byte* const address = entry_[storage.index()];
  if (address == nullptr) throw Error("storage {} has no memory between steps", storage.value());
  return address;
}

std::span<float> Executor::input() {
  const Step& step = *phase_->step;
  for (const Tensor& tensor : step.tensors)
    if (tensor.tensor_class == TensorClass::input && tensor.role == Role::x)
      return {reinterpret_cast<float*>(entry_address(tensor.storage)), static_cast<std::size_t>(tensor.shape.elements())};
  return {};
}

std::span<std::int32_t> Executor::labels() {
  const Step& step = *phase_->step;
  for (const Tensor& tensor : step.tensors)
    if (tensor.tensor_class == TensorClass::input && tensor.role == Role::labels)
      return {reinterpret_cast<std::int32_t*>(entry_address(tensor.storage)), static_cast<std::size_t>(tensor.shape.elements())};
  return {};
}

Executor::Metric Executor::metric() const {
  Metric total;
  const Step& step = *phase_->step;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.tensor_class != TensorClass::metric) continue;
    float values[2];
    std::memcpy(values, entry_address(tensor.storage), sizeof values);
    const Shape& output = step.network->layer(tensor.layer).outputs.front();
    const auto answers = static_cast<double>(step.options.batch * output.height * output.width);
    total.loss += static_cast<double>(values[0]) / answers;
    total.correct += static_cast<double>(values[1]);
    total.answers += answers;
  }
  return total;
}

void Executor::write(TensorId tensor, std::span<const float> values) {
  backend_.write_tensor(*phase_->step, tensor, values, entry_address(phase_->step->tensor(tensor).storage));
}

void Executor::read(TensorId tensor, std::span<float> values) const {
  backend_.read_tensor(*phase_->step, tensor, entry_address(phase_->step->tensor(tensor).storage), values);
}

}  // namespace tide
