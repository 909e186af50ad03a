// What a session keeps from step to step: parameters, statistics and optimizer state, by name.
#include <algorithm>
#include <numeric>
#include <thread>
#include <tuple>
#include <unordered_map>

#include "base/hash.h"
#include "step/buckets.h"
#include "train/initialize.h"
#include "train/session.h"

namespace tide {
namespace {

// A vector is a vector, wherever its one extent stands in the file; checkpoints of old have four extents always.
std::vector<std::int64_t> extents(const Shape& shape) {
  std::vector<std::int64_t> result;
  for (const std::int64_t extent : shape.extents())
    if (extent != 1) result.push_back(extent);
  return result;
}

}  // namespace

std::vector<Session::StateEntry> Session::state_entries() const {
  const Step& step = lead().step();
  // What lasts, by parameter or by bucket, and by what it is.
  std::map<std::tuple<std::int32_t, TensorClass, Role>, TensorId> own, in_bucket;
  for (const Storage& storage : step.storages) {
    if (!storage.persistent || !storage.entry.valid()) continue;
    const Tensor& tensor = step.tensor(storage.entry);
    // A parameter may be used in several roles; the optimizer has several tensors of it.
    const Role role = tensor.tensor_class == TensorClass::optimizer_state ? tensor.role : Role::weight;
    if (tensor.parameter.valid())
      own[{tensor.parameter.value(), tensor.tensor_class, role}] = storage.entry;
    else if (is_bucket(tensor) || is_share(tensor))
      in_bucket[{bucket_of(tensor), tensor.tensor_class, role}] = storage.entry;
  }
  std::vector<StateEntry> entries;
  const auto add = [&](ParameterId id, TensorClass tensor_class, Role role, std::string name) {
    if (const auto found = own.find({id.value(), tensor_class, role}); found != own.end()) {
      entries.push_back({std::move(name), id, tensor_class, found->second, {}});
      return;
    }
    const ViewId view = bucket_view(step, id);
    if (!view.valid()) return;
    const auto found = in_bucket.find({step.view(view).bucket, tensor_class, role});
    if (found != in_bucket.end()) entries.push_back({std::move(name), id, tensor_class, found->second, view});
  };
  std::vector<bool> seen(network_->parameters.size(), false);
  for (const Layer& layer : step.network->layers) {
    for (const LayerParameter& parameter : layer.parameters) {
      if (seen[parameter.id.index()]) continue;
      seen[parameter.id.index()] = true;
      const std::string& name = network_->parameters[parameter.id.index()].name;
      add(parameter.id, TensorClass::parameter, Role::weight, name);
      for (const Role role : {Role::first_moment, Role::second_moment})
        add(parameter.id, TensorClass::optimizer_state, role, fmt::format("{}.{}", name, role_name(role)));
    }
    for (const LayerParameter& statistic : layer.statistics)
      add(statistic.id, TensorClass::running_statistics, Role::weight, network_->parameters[statistic.id.index()].name);
  }
  return entries;
}

std::vector<float> Session::read_entry(const StateEntry& entry, Gathered& gathered) const {
  const Step& step = lead().step();
  std::vector<float> values(static_cast<std::size_t>(network_->parameters[entry.parameter.index()].shape.elements()));
  if (!entry.view.valid()) {
    lead().read(entry.tensor, values);
    return values;
  }
  const Tensor& tensor = step.tensor(entry.tensor);
  const View& view = step.view(entry.view);
  auto& [held, bytes] = gathered[{tensor.tensor_class, tensor.role}];
  if (held != entry.tensor) {
    const std::size_t own = step.storage(tensor.storage).bytes.size();
    const auto ranks = is_share(tensor) ? static_cast<std::size_t>(this->ranks().count()) : 1;
    bytes.resize(own * ranks);
    const std::span<std::byte> part =
        std::span(bytes).subspan(ranks > 1 ? own * static_cast<std::size_t>(this->ranks().rank()) : 0, own);
    lead().read_bytes(tensor.storage, Bytes(), part);
    if (ranks > 1) this->ranks().communicator->all_gather(bytes);
    held = entry.tensor;
  }
  target_->backend()->unpack(step, entry.parameter, bytes.data() + view.offset.size(), values);
  return values;
}

void Session::write_entry(const StateEntry& entry, std::span<const float> values) {
  if (!entry.view.valid()) return lead().write(entry.tensor, values);
  const Step& step = lead().step();
  const Tensor& tensor = step.tensor(entry.tensor);
  const View& view = step.view(entry.view);
  std::vector<std::byte> packed(view.bytes.size());
  backend().pack(step, entry.parameter, values, packed.data());
  // Of a share, what of it is this rank's.
  const Bytes bytes = step.storage(tensor.storage).bytes;
  const Bytes first = is_share(tensor) ? bytes * ranks().rank() : Bytes();
  const Bytes begin = std::max(view.offset, first), end = std::min(view.offset + view.bytes, first + bytes);
  if (begin >= end) return;
  lead().write_bytes(tensor.storage, begin - first,
                     std::span(packed).subspan((begin - view.offset).size(), (end - begin).size()));
}

void Session::initialize() {
  const std::vector<StateEntry> entries = state_entries();
  const auto values_of = [&](const StateEntry& entry) {
    const std::int64_t elements = network_->parameters[entry.parameter.index()].shape.elements();
    if (entry.tensor_class == TensorClass::optimizer_state)
      return std::vector<float>(static_cast<std::size_t>(elements), 0.0F);
    return initial_values(*network_, entry.parameter, options_.seed);
  };
  // In buckets, also what is between parameters has a value.
  for (const Storage& storage : lead().step().storages) {
    if (!storage.persistent || !storage.entry.valid()) continue;
    const Tensor& tensor = lead().step().tensor(storage.entry);
    if (tensor.tensor_class != TensorClass::parameter_gradient && (is_bucket(tensor) || is_share(tensor)))
      lead().write_bytes(tensor.storage, Bytes(), std::vector<std::byte>(storage.bytes.size()));
  }
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
    for (std::size_t k = 0; k < count; ++k) write_entry(entries[first + k], values[k]);
  }
}

std::vector<float> Session::parameter(ParameterId id) const {
  Gathered gathered;
  for (const StateEntry& entry : state_entries())
    if (entry.parameter == id && entry.tensor_class != TensorClass::optimizer_state) return read_entry(entry, gathered);
  throw Error("the step has no parameter {}", id.value());
}

void Session::set_parameter(ParameterId id, std::span<const float> values) {
  const Parameter& parameter = network_->parameters[id.index()];
  if (static_cast<std::int64_t>(values.size()) != parameter.shape.elements())
    throw Error("{} has {} values, not {}", parameter.name, parameter.shape.elements(), values.size());
  for (const StateEntry& entry : state_entries())
    if (entry.parameter == id && entry.tensor_class != TensorClass::optimizer_state) return write_entry(entry, values);
  throw Error("the step has no parameter {}", id.value());
}

std::uint64_t Session::weights_hash() const {
  Fnv hash;
  Gathered gathered;
  for (const StateEntry& entry : state_entries())
    if (entry.tensor_class != TensorClass::optimizer_state) hash.add(read_entry(entry, gathered));
  return hash.value();
}

std::vector<NamedTensor> Session::state() const {
  std::vector<NamedTensor> result;
  Gathered gathered;
  for (const StateEntry& entry : state_entries())
    result.push_back({entry.name, network_->parameters[entry.parameter.index()].shape, read_entry(entry, gathered)});
  return result;
}

std::vector<std::pair<Session::StateEntry, const NamedTensor*>> Session::match(const std::vector<NamedTensor>& state,
                                                                               bool with_optimizer) const {
  std::unordered_map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : state) by_name.emplace(tensor.name, &tensor);
  std::vector<std::pair<StateEntry, const NamedTensor*>> found;
  for (StateEntry& entry : state_entries()) {
    if (entry.tensor_class == TensorClass::optimizer_state && !with_optimizer) continue;
    const auto it = by_name.find(entry.name);
    if (it == by_name.end())
      throw Error("the checkpoint has no '{}'; was it saved from another network or optimizer?", entry.name);
    const Shape &saved = it->second->shape, &shape = network_->parameters[entry.parameter.index()].shape;
    if (extents(saved) != extents(shape) || static_cast<std::int64_t>(it->second->values.size()) != shape.elements())
      throw Error("'{}' is {} in the checkpoint and {} in the network", entry.name, fmt::join(saved.extents(), "x"),
                  fmt::join(shape.extents(), "x"));
    found.emplace_back(std::move(entry), it->second);
  }
  return found;
}

void Session::restore(const std::vector<NamedTensor>& state, std::uint64_t steps_done, bool with_optimizer) {
  for (const auto& [entry, named] : match(state, with_optimizer)) write_entry(entry, named->values);
  steps_ = steps_done;
}

void Session::restore_from_first(const std::vector<NamedTensor>& state, std::uint64_t steps_done) {
  if (ranks().count() == 1) return restore(state, steps_done);
  Communicator& all = *ranks().communicator;
  const bool is_first = ranks().rank() == 0;
  std::vector<std::pair<StateEntry, const NamedTensor*>> found;
  if (is_first)
    found = match(state, true);
  else
    for (StateEntry& entry : state_entries()) found.emplace_back(std::move(entry), nullptr);
  std::vector<float> values;
  for (const auto& [entry, named] : found) {
    values.resize(static_cast<std::size_t>(network_->parameters[entry.parameter.index()].shape.elements()));
    if (is_first) values = named->values;
    all.broadcast(std::as_writable_bytes(std::span(values)), 0);
    write_entry(entry, values);
  }
  steps_ = steps_done;
  all.broadcast(std::as_writable_bytes(std::span(&steps_, 1)), 0);
}

void Session::require_one_layout() const {
  if (ranks().count() == 1) return;
  constexpr std::int64_t kMostElements = 1 << 22;  // of larger ones, how many bytes they take says enough
  const Step& step = lead().step();
  Fnv hash;
  for (const View& view : step.views) {
    if (!view.parameter.valid()) continue;
    hash.add(fmt::format("{} {} {} {} ", view.bucket, view.parameter.value(), view.offset.count(), view.bytes.count()));
    if (view.shape.elements() > kMostElements) continue;
    std::vector<float> numbers(static_cast<std::size_t>(view.shape.elements()));
    std::iota(numbers.begin(), numbers.end(), 1.0F);
    std::vector<float> packed(view.bytes.size() / sizeof(float));
    target_->backend()->pack(step, view.parameter, numbers, reinterpret_cast<std::byte*>(packed.data()));
    hash.add(packed);
  }
  const std::string own = fmt::format("{:016x}", hash.value());
  const std::vector<std::string> all = ranks().communicator->gather(own);
  for (int rank = 1; rank < ranks().count(); ++rank)
    if (all[static_cast<std::size_t>(rank)] != all[0])
      throw Error(
          "parameters lie otherwise on rank {} ({}) than on rank 0 ({}), so that their gradients cannot be summed; use "
          "processors of one kind, or give all the same ONEDNN_MAX_CPU_ISA and --threads",
          rank, ranks().communicator->host(rank), ranks().communicator->host(0));
}

void Session::share_statistics() {
  if (ranks().count() == 1) return;
  Gathered none;
  for (const StateEntry& entry : state_entries()) {
    if (entry.tensor_class != TensorClass::running_statistics) continue;
    std::vector<float> values = read_entry(entry, none);
    ranks().communicator->broadcast(std::as_writable_bytes(std::span(values)), 0);
    if (ranks().rank() != 0) write_entry(entry, values);
  }
}

}  // namespace tide
