#include "executor/phase_executor.h"

#include <algorithm>
#include <cstring>

#include "base/tree_sum.h"
#include "network/kind.h"

namespace tide {
namespace {

std::string storage_name(const Step& step, StorageId storage) {
  for (std::size_t t = 0; t < step.tensors.size(); ++t)
    if (step.tensors[t].storage == storage) return tensor_name(step, TensorId(t));
  return fmt::format("storage {}", storage.value());
}

std::string_view reason(const std::exception_ptr& error, std::string& text) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    text = caught.what();
  } catch (...) {
    text = "an unknown exception";
  }
  return text;
}

}  // namespace

bool is_debug_build() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

PhaseExecutor::PhaseExecutor(const Phase& phase, Backend& backend, const Tiers& tiers, const ExecutorOptions& options)
    : backend_(backend),
      arena_(tiers.device),
      phase_(&phase),
      link_(backend, options.link_bytes_per_second, options.shared_link),
      collectives_(options.collectives),
      observer_(options.observer),
      record_(options.record) {
  if (observer_ != nullptr) observer_->on_phase(phase);
  find_memory(tiers);
  prepare();
  if (!backend_.host_addressable()) stage_entries(options.input_ahead);
  if (options.guard && backend_.host_addressable()) {
    std::vector<std::byte*> stays, workspaces;
    for (const Residency& r : phase_->residencies) stays.push_back(locate(r.tier, r.address));
    for (const Op& op : phase_->ops) workspaces.push_back(op.is_run() ? arena_.at(op.run().workspace) : nullptr);
    guard_ = std::make_unique<Guard>(*phase_, std::move(stays), std::move(workspaces));
  }
  if (record_) timeline_.spans.resize(ops_.size());
  const bool uses_stores = std::ranges::any_of(ops_, [](const Prepared& op) { return op.store != nullptr; });
  const bool calls_others =
      std::any_of(ops_.begin(), ops_.end(), [](const Prepared& op) { return op.lane == Lane::reduce; });
  const bool records = !calls_others || collectives_->records();
  const bool slowed = options.link_bytes_per_second > 0 || options.shared_link != nullptr;
  if (!guard_ && !uses_stores && records && !slowed) record_step();
  const bool copies =
      std::any_of(ops_.begin(), ops_.end(), [](const Prepared& op) { return op.lane != Lane::compute; });
  if (copies && !guard_ && !queue_) lanes_ = std::make_unique<Lanes>(*phase_, [this](std::size_t op) { run_op(op); });
}

Bytes input_bytes(const Step& step) {
  Bytes sum;
  for (const Storage& storage : step.storages)
    if (storage.entry.valid() && step.tensor(storage.entry).tensor_class == TensorClass::input)
      sum += storage.bytes.aligned();
  return sum;
}

void PhaseExecutor::find_memory(const Tiers& tiers) {
  PerTier<Bytes> needed;
  for (const Residency& r : phase_->residencies)
    needed[r.tier] = std::max(needed[r.tier], r.address + aligned_bytes(*phase_, r));
  Bytes& device = needed[Tier::device];
  for (const Op& op : phase_->ops)
    if (op.is_run()) device = std::max(device, op.run().workspace + workspace_bytes(*phase_->step, op.run()).aligned());
  if (device > arena_.size())
    throw Error("the plan needs {} bytes of device memory, the arena has {}", device.count(), arena_.size().count());

  const Bytes host = needed[Tier::host];
  host_ = tiers.host;
  if (host_ != nullptr && host > host_->size())
    throw Error("the plan needs {} bytes of host memory, the arena has {}", host.count(), host_->size().count());

  peer_ = tiers.peer;
  if (needed[Tier::peer].size() > peer_.size())
    throw Error("the plan needs {} bytes of another device's memory, there are {}", needed[Tier::peer].count(),
                peer_.size());

  stores_ = tiers.stores;
  for (const TierRow& row : kTierTable) {
    if (find_route(row.tier, Tier::device) || row.tier == Tier::device || needed[row.tier].is_zero()) continue;
    const Store* const store = stores_[row.tier];
    if (store == nullptr)
      throw Error("the plan needs {} bytes of {} memory and was given none; plan with more host memory",
                  needed[row.tier].count(), row.name);
    if (needed[row.tier] > store->size())
      throw Error("the plan needs {} bytes of {} memory, there are {}", needed[row.tier].count(), row.name,
                  store->size().count());
  }
}

std::byte* PhaseExecutor::locate(Tier tier, Bytes address) const {
  if (tier == Tier::device) return arena_.at(address);
  if (tier == Tier::peer) return peer_.data() + address.size();
  return tier == Tier::host ? host_->at(address) : nullptr;
}

void PhaseExecutor::prepare() {
  const Step& step = *phase_->step;
  const std::size_t count = phase_->ops.size();
  entry_.resize(step.storages.size());
  // Where each storage is, tier by tier, op by op.
  std::vector<std::vector<std::uint32_t>> begins(count);
  PerTier<std::vector<Bytes>> current;
  for (auto& tier : current) tier.resize(step.storages.size());
  const auto enter = [&](const Residency& r) { current[r.tier][r.storage.index()] = r.address; };
  std::vector<Bytes> tops(count);
  for (std::uint32_t r = 0; r < phase_->residencies.size(); ++r) {
    const Residency& residency = phase_->residencies[r];
    const Bytes end = residency.tier == Tier::device ? residency.address + aligned_bytes(*phase_, residency) : Bytes();
    if (residency.first == kEntry) {
      enter(residency);
      entry_[residency.storage.index()] = locate(residency.tier, residency.address);
      entry_top_ = std::max(entry_top_, end);
    } else {
      const auto first = static_cast<std::size_t>(residency.first);
      begins[first].push_back(r);
      tops[first] = std::max(tops[first], end);
    }
  }

  const std::vector<Bytes>& device = current[Tier::device];
  ops_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Op& op = phase_->ops[i];
    Prepared& prepared = ops_[i];
    for (const std::uint32_t r : begins[i]) enter(phase_->residencies[r]);
    prepared.top = tops[i];
    prepared.lane = op.lane;
    if (op.is_copy()) {
      prepare_copy(op.copy(), current, prepared);
      continue;
    }
    const Run& run = op.run();
    if (!is_collective(step.task(run.task).kind))
      prepared.kernel = backend_.prepare(step, run.task, run.algorithm);
    else if (collectives_ != nullptr)
      prepared.kernel = collectives_->prepare(step, run.task);
    else
      throw Error("{} takes the other ranks, and there are none", task_name(step, run.task));
    prepared.first_address = static_cast<std::uint32_t>(addresses_.size());
    for (const Operand& operand : step.operands_of(run.task)) {
      const bool own = operand.view.valid() && step.view(operand.view).own;
      const Bytes before = own && collectives_ != nullptr ? bytes_of(step, operand) * collectives_->rank() : Bytes();
      addresses_.push_back(
          arena_.at(device[step.tensor(operand.tensor).storage.index()] + step.offset_of(operand) + before));
    }
    const Bytes workspace = workspace_bytes(step, run);
    if (workspace.is_zero()) continue;
    prepared.workspace = arena_.at(run.workspace);
    prepared.top = std::max(prepared.top, run.workspace + workspace.aligned());
  }
}

void PhaseExecutor::prepare_copy(const Copy& copy, const PerTier<std::vector<Bytes>>& current,
                                 Prepared& prepared) const {
  const auto address = [&](Tier tier) { return current[tier][copy.storage.index()]; };
  prepared.copy_bytes = phase_->step->storage(copy.storage).bytes;
  prepared.copy_from = locate(copy.from, address(copy.from));
  prepared.copy_to = locate(copy.to, address(copy.to));
  for (const Tier tier : {copy.from, copy.to})
    if (stores_[tier] != nullptr) {
      prepared.store = stores_[tier];
      prepared.store_offset = address(tier);
    }
  prepared.route = find_route(copy.from, copy.to).value();
}

void PhaseExecutor::stage_entries(Bytes input_ahead) {
  const Step& step = *phase_->step;
  if (!input_ahead.is_zero() && input_ahead + input_bytes(step) > arena_.size())
    throw Error("the next batch of {} bytes does not fit behind byte {} of the arena's {}", input_bytes(step).count(),
                input_ahead.count(), arena_.size().count());
  std::vector<TensorClass> classes(step.storages.size(), TensorClass::parameter);
  for (const Tensor& tensor : step.tensors)
    if (tensor.tensor_class == TensorClass::input || tensor.tensor_class == TensorClass::metric)
      classes[tensor.storage.index()] = tensor.tensor_class;
  std::vector<Staging::Entry> entries;
  for (const Residency& r : phase_->residencies) {
    const TensorClass kind = classes[r.storage.index()];
    if (r.first != kEntry || r.tier != Tier::device || kind == TensorClass::parameter) continue;
    entries.push_back(
        {r.storage, locate(r.tier, r.address), step.storage(r.storage).bytes, kind == TensorClass::input});
  }
  staging_ =
      std::make_unique<Staging>(backend_, std::move(entries), input_ahead.is_zero() ? nullptr : arena_.at(input_ahead));
}

// What the plan says about order becomes that of the queue: lanes keep theirs, waits are kept
// where they go to another lane.
void PhaseExecutor::record_step() {
  queue_ = backend_.make_queue(record_);
  if (!queue_) return;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const Prepared& op = ops_[i];
    try {
      for (const std::int32_t wait : phase_->ops[i].waits)
        if (ops_[static_cast<std::size_t>(wait)].lane != op.lane) queue_->wait(op.lane, static_cast<std::size_t>(wait));
      const Launch launch{addresses_.data() + op.first_address, op.workspace, nullptr};
      if (op.lane == Lane::reduce)
        collectives_->record(*queue_, i, *phase_->step, phase_->ops[i].run().task, launch);
      else if (op.kernel)
        queue_->run(op.lane, i, op.kernel, launch);
      else
        queue_->copy(op.lane, i, op.copy_to, op.copy_from, op.copy_bytes);
    } catch (...) {
      throw failure(i, std::current_exception());
    }
  }
  queue_->finish();
}

void PhaseExecutor::move(const Prepared& op) {
  if (row_of(op.route).medium == Medium::peer)
    backend_.copy(op.copy_to, op.copy_from, op.copy_bytes);
  else if (op.store == nullptr)
    link_.copy(op.copy_to, op.copy_from, op.copy_bytes, op.route);
  else if (op.copy_from != nullptr)
    op.store->write(op.store_offset, op.copy_from, op.copy_bytes);
  else
    op.store->read(op.store_offset, op.copy_to, op.copy_bytes);
}

void PhaseExecutor::run_op(std::size_t index) {
  const Prepared& op = ops_[index];
  const double begin = record_ ? since_start_.seconds() : 0;
  if (observer_ != nullptr) observer_->on_begin(*phase_, index);
  if (op.kernel)
    op.kernel(Launch{addresses_.data() + op.first_address, op.workspace, state_});
  else
    move(op);
  if (observer_ != nullptr) observer_->on_end(*phase_, index);
  count(op, totals_[op.lane]);
  if (record_ && op.kernel) backend_.synchronize();
  if (record_) timeline_.spans[index] = {static_cast<std::int32_t>(index), begin, since_start_.seconds()};
}

void PhaseExecutor::count(const Prepared& op, Totals& totals) const {
  totals.top = std::max(totals.top, op.top);
  if (!op.kernel) totals.moved[op.route] += op.copy_bytes;
}

void PhaseExecutor::run_in_order() {
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (guard_) guard_->before(i);
    try {
      run_op(i);
    } catch (...) {
      throw failure(i, std::current_exception());
    }
    if (guard_) guard_->after(i);
  }
}

void PhaseExecutor::start(const StepState& state) {
  state_ = &state;
  totals_ = {};
  if (guard_) guard_->begin_step();
  if (staging_) staging_->send();
  backend_.begin_step(state);
  since_start_.restart();
  if (queue_) {
    if (observer_ != nullptr) observer_->on_recorded_begin(*phase_);
    return queue_->launch();
  }
  if (lanes_) {
    const Lanes::Outcome outcome = lanes_->run_step();
    if (outcome.error) throw failure(outcome.op, outcome.error);
  } else {
    run_in_order();
  }
  backend_.synchronize();
}

void PhaseExecutor::finish() {
  if (queue_) {
    queue_->synchronize();
    if (observer_ != nullptr) observer_->on_recorded_end(*phase_);
    for (const Prepared& op : ops_) count(op, totals_[op.lane]);
  }
  timeline_.seconds = since_start_.seconds();
  if (queue_ && record_)
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const StepQueue::Span span = queue_->span(i);
      timeline_.spans[i] = {static_cast<std::int32_t>(i), span.begin, span.end};
    }
  high_water_ = std::max(high_water_, entry_top_);
  for (const Totals& totals : totals_) high_water_ = std::max(high_water_, totals.top);
  if (staging_) staging_->fetch();
  if (guard_) guard_->end_step();
}

Error PhaseExecutor::failure(std::size_t index, const std::exception_ptr& error) const {
  const Op& op = phase_->ops[index];
  const Step& step = *phase_->step;
  std::string text;
  if (op.is_run()) return Error("{} failed: {}", task_name(step, op.run().task), reason(error, text));
  return Error("copying {} from {} to {} ({} bytes) failed: {}", storage_name(step, op.copy().storage),
               tier_name(op.copy().from), tier_name(op.copy().to), step.storage(op.copy().storage).bytes.count(),
               reason(error, text));
}

Bytes PhaseExecutor::total(Route route) const {
  Bytes sum;
  for (const Totals& totals : totals_) sum += totals.moved[route];
  return sum;
}

std::byte* PhaseExecutor::entry_address(StorageId storage) const {
  std::byte* const address = entry_[storage.index()];
  if (address == nullptr) throw Error("storage {} has no memory between steps", storage.value());
  return address;
}

std::byte* PhaseExecutor::host_view(StorageId storage) const {
  std::byte* const staged = staging_ ? staging_->find(storage) : nullptr;
  return staged != nullptr ? staged : entry_address(storage);
}

void PhaseExecutor::send_ahead() {
  if (staging_) staging_->send_ahead();
}

Metric PhaseExecutor::metric() const {
  Metric total;
  const Step& step = *phase_->step;
  const StepOptions& options = step.options;
  const std::int64_t parts = options.ranks.parts > 0 ? options.batch / options.sub_batch : 1;
  std::vector<double> losses(static_cast<std::size_t>(parts), 0);
  for (const Tensor& tensor : step.tensors) {
    if (tensor.tensor_class != TensorClass::metric) continue;
    float values[2];
    std::memcpy(values, host_view(tensor.storage), sizeof values);
    const Layer& layer = step.network->layer(tensor.layer);
    const LossLabels labels = description_of(layer.kind).loss(layer);
    losses[static_cast<std::size_t>(tensor.index)] +=
        static_cast<double>(values[0]) / static_cast<double>(labels.terms);
    total.correct += static_cast<double>(values[1]);
  }
  total.loss_sum = tree_sum(std::span(losses));
  total.loss = total.loss_sum / static_cast<double>(options.batch);
  return total;
}

void PhaseExecutor::write(TensorId tensor, std::span<const float> values) {
  backend_.write_tensor(*phase_->step, tensor, values, host_view(phase_->step->tensor(tensor).storage));
}

void PhaseExecutor::read(TensorId tensor, std::span<float> values) const {
  backend_.read_tensor(*phase_->step, tensor, host_view(phase_->step->tensor(tensor).storage), values);
}

void PhaseExecutor::write_bytes(StorageId storage, Bytes offset, std::span<const std::byte> bytes) {
  backend_.copy(entry_address(storage) + offset.size(), bytes.data(), Bytes(static_cast<std::int64_t>(bytes.size())));
}

void PhaseExecutor::read_bytes(StorageId storage, Bytes offset, std::span<std::byte> bytes) const {
  backend_.copy(bytes.data(), entry_address(storage) + offset.size(), Bytes(static_cast<std::int64_t>(bytes.size())));
}

}  // namespace tide
