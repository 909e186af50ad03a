// What a session keeps from step to step: parameters, statistics and optimizer state, by name.
#include <algorithm>
#include <thread>
#include <unordered_map>

#include "base/hash.h"
#include "train/initialize.h"
#include "train/session.h"

namespace tide {
namespace {

// The entry tensor of a parameter's own storage.
TensorId parameter_tensor(const Step& step, ParameterId id) {
  for (const Storage& storage : step.storages) {
    if (!storage.persistent || !storage.entry.valid()) continue;
    const Tensor& tensor = step.tensor(storage.entry);
    if (tensor.parameter == id && tensor.tensor_class != TensorClass::optimizer_state) return storage.entry;
  }
  throw Error("the step has no parameter {}", id.value());
}

// A vector is a vector, wherever its one extent stands in the file; checkpoints of old have four extents always.
std::vector<std::int64_t> extents(const Shape& shape) {
  std::vector<std::int64_t> result;
  for (const std::int64_t extent : shape.extents())
    if (extent != 1) result.push_back(extent);
  return result;
}

}  // namespace

std::vector<Session::StateEntry> Session::state_entries() const {
  std::vector<StateEntry> entries;
  const Step& step = lead().step();
  for (const Storage& storage : step.storages) {
    if (!storage.persistent || !storage.entry.valid()) continue;
    const Tensor& tensor = step.tensor(storage.entry);
    if (!tensor.parameter.valid()) continue;
    std::string name = network_->parameters[tensor.parameter.index()].name;
    if (tensor.tensor_class == TensorClass::optimizer_state) name += fmt::format(".{}", role_name(tensor.role));
    entries.push_back({std::move(name), storage.entry});
  }
  return entries;
}

void Session::initialize() {
  const std::vector<StateEntry> entries = state_entries();
  const auto values_of = [&](const StateEntry& entry) {
    const Tensor& tensor = lead().step().tensor(entry.tensor);
    if (tensor.tensor_class == TensorClass::optimizer_state)
      return std::vector<float>(static_cast<std::size_t>(tensor.shape.elements()), 0.0F);
    return initial_values(*network_, tensor.parameter, options_.seed);
  };
  // Random numbers for gigabytes of parameters take minutes on one core.
  constexpr std::int64_t kWorthIt = 1 << 24;
  const std::size_t together =
      network_->parameter_count() < kWorthIt ? 1 : std::max(std::thread::hardware_concurrency(), 1U);
  std::vector<std::vector<float>> values(together);
  for (std::size_t first = 0; first < entries.size(); first += together) {
    const std::size_t count = std::min(together, entries.size() - first);
    std::vector<std::thread> threads;
    for (std::size_t k = 1; k < count; ++k) threads.emplace_back([&, k] { values[k] = values_of(entries[first + k]); });
    values[0] = values_of(entries[first]);
    for (std::thread& thread : threads) thread.join();
    for (std::size_t k = 0; k < count; ++k) lead().write(entries[first + k].tensor, values[k]);
  }
}

std::vector<float> Session::parameter(ParameterId id) const {
  std::vector<float> values(static_cast<std::size_t>(network_->parameters[id.index()].shape.elements()));
  lead().read(parameter_tensor(lead().step(), id), values);
  return values;
}

void Session::set_parameter(ParameterId id, std::span<const float> values) {
  const Parameter& parameter = network_->parameters[id.index()];
  if (static_cast<std::int64_t>(values.size()) != parameter.shape.elements())
    throw Error("{} has {} values, not {}", parameter.name, parameter.shape.elements(), values.size());
  lead().write(parameter_tensor(lead().step(), id), values);
}

std::uint64_t Session::weights_hash() const {
  Fnv hash;
  for (const StateEntry& entry : state_entries()) {
    const Tensor& tensor = lead().step().tensor(entry.tensor);
    if (tensor.tensor_class == TensorClass::optimizer_state) continue;
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
    lead().read(entry.tensor, values);
    hash.add(values);
  }
  return hash.value();
}

std::vector<NamedTensor> Session::state() const {
  std::vector<NamedTensor> result;
  for (const StateEntry& entry : state_entries()) {
    const Tensor& tensor = lead().step().tensor(entry.tensor);
    NamedTensor named{entry.name, tensor.shape, std::vector<float>(static_cast<std::size_t>(tensor.shape.elements()))};
    lead().read(entry.tensor, named.values);
    result.push_back(std::move(named));
  }
  return result;
}

void Session::restore(const std::vector<NamedTensor>& state, std::uint64_t steps_done, bool with_optimizer) {
  std::unordered_map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : state) by_name.emplace(tensor.name, &tensor);
  std::vector<std::pair<TensorId, const NamedTensor*>> found;
  for (const StateEntry& entry : state_entries()) {
    const Tensor& tensor = lead().step().tensor(entry.tensor);
    if (tensor.tensor_class == TensorClass::optimizer_state && !with_optimizer) continue;
    const auto it = by_name.find(entry.name);
    if (it == by_name.end())
      throw Error("the checkpoint has no '{}'; was it saved from another network or optimizer?", entry.name);
    const Shape& saved = it->second->shape;
    if (extents(saved) != extents(tensor.shape) ||
        static_cast<std::int64_t>(it->second->values.size()) != tensor.shape.elements())
      throw Error("'{}' is {} in the checkpoint and {} in the network", entry.name, fmt::join(saved.extents(), "x"),
                  fmt::join(tensor.shape.extents(), "x"));
    found.emplace_back(entry.tensor, it->second);
  }
  for (const auto& [tensor, named] : found) lead().write(tensor, named->values);
  steps_ = steps_done;
}

void Session::share_from_first(bool statistics_only) {
  if (ranks().count() == 1) return;
  for (const StateEntry& entry : state_entries()) {
    const Tensor& tensor = lead().step().tensor(entry.tensor);
    if (statistics_only && tensor.tensor_class != TensorClass::running_statistics) continue;
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
    lead().read(entry.tensor, values);
    ranks().communicator->broadcast(std::as_writable_bytes(std::span(values)), 0);
    if (ranks().rank() != 0) lead().write(entry.tensor, values);
  }
}

void Session::share_state() {
  if (ranks().count() == 1) return;
  ranks().communicator->broadcast(std::as_writable_bytes(std::span(&steps_, 1)), 0);
  share_from_first(false);
}

}  // namespace tide
