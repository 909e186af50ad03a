#include "planner/draft/recorder.h"

#include <algorithm>

#include "plan/alive.h"

namespace tide {

Recorder::Recorder(const Step& step, const Resting& resting) : step_(step), resting_(resting) {
  for (auto& tier : states_) tier.resize(step.storages.size());
  PerTier<Bytes> bottoms;
  for (const bool persistent : {true, false}) {
    for (std::size_t s = 0; s < step.storages.size(); ++s) {
      const Storage& storage = step.storages[s];
      if (storage.persistent != persistent || (!persistent && !storage.entry.valid())) continue;
      const Tier tier = home(StorageId(s));
      Bytes& bottom = bottoms[tier];
      state(StorageId(s), tier) = {static_cast<std::int32_t>(stays_.size()), storage.entry};
      stays_.push_back({StorageId(s), tier, kEntry, kEntry, kEntry, kEntry, bottom});
      bottom += storage.bytes.aligned();
    }
  }
}

void Recorder::open(StorageId storage, Tier tier, Bytes address) {
  State& opened = state(storage, tier);
  if (opened.stay >= 0) throw Error("storage {} already has a stay in {} memory", storage.value(), tier_name(tier));
  opened = {static_cast<std::int32_t>(stays_.size()), TensorId()};
  stays_.push_back({storage, tier, next_op(), kEntry, next_op(), kEntry, address});
}

void Recorder::open_operands(TaskId task) {
  for (const Operand& operand : step_.operands_of(task)) {
    const StorageId storage = step_.tensor(operand.tensor).storage;
    if (!has(storage, Tier::device)) open(storage, Tier::device);
  }
}

void Recorder::close(StorageId storage, Tier tier) { state(storage, tier) = {}; }

void Recorder::use(StorageId storage, Tier tier) {
  const State& used = state(storage, tier);
  if (used.stay < 0) throw Error("storage {} is used in {} memory, where it is not", storage.value(), tier_name(tier));
  DraftStay& stay = stays_[static_cast<std::size_t>(used.stay)];
  // A stay that was opened ahead begins with its first use.
  if (stay.last == kEntry && stay.first != kEntry) stay.first = stay.hold_first = next_op();
  stay.last = stay.hold_last = next_op();
}

std::int32_t Recorder::run(TaskId task, std::uint32_t algorithm, Bytes workspace) {
  for (const Operand& operand : step_.operands_of(task)) {
    const StorageId storage = step_.tensor(operand.tensor).storage;
    if (operand.access == Access::read && value(storage, Tier::device) != operand.tensor)
      throw Error("{} would not find {} on the device", task_name(step_, task), tensor_name(step_, operand.tensor));
    use(storage, Tier::device);
  }
  for (const Operand& operand : step_.operands_of(task))
    if (operand.access != Access::read)
      state(step_.tensor(operand.tensor).storage, Tier::device).value = operand.tensor;
  ops_.push_back(run_op(step_, {task, algorithm, workspace}));
  return next_op() - 1;
}

std::int32_t Recorder::copy(StorageId storage, Tier from, Tier to) {
  use(storage, from);
  use(storage, to);
  state(storage, to).value = value(storage, from);
  ops_.push_back(copy_op({storage, from, to}));
  return next_op() - 1;
}

std::int32_t Recorder::fetch(StorageId storage) {
  if (!has(storage, Tier::device)) open(storage, Tier::device);
  return copy(storage, Tier::host, Tier::device);
}

Draft Recorder::finish() && {
  for (std::size_t s = 0; s < step_.storages.size(); ++s) {
    if (!step_.storages[s].persistent) continue;
    const State& left = state(StorageId(s), home(StorageId(s)));
    if (rests(resting_, StorageId(s)) && left.value != step_.storages[s].exit)
      throw Error("{} is not written back", tensor_name(step_, step_.storages[s].exit));
    DraftStay& stay = stays_[static_cast<std::size_t>(left.stay)];
    stay.last = stay.hold_last = next_op();
  }
  // Inputs that nobody reads still enter; other stays without a use never were.
  std::erase_if(stays_, [](const DraftStay& stay) { return stay.last < stay.first; });
  return {std::move(ops_), std::move(stays_), false};
}

std::vector<std::int64_t> live_data(const Step& step, const Draft& draft) {
  AliveSum sum(draft.ops.size());
  for (const DraftStay& stay : draft.stays) {
    const Storage& storage = step.storage(stay.storage);
    if (stay.tier == Tier::device && is_data(storage.tensor_class))
      sum.add(stay.first, stay.last, storage.bytes.count());
  }
  std::vector<std::int64_t> live = std::move(sum).take();
  for (std::size_t i = 0; i < live.size(); ++i)
    if (!draft.ops[i].is_run()) live[i] = 0;
  return live;
}

}  // namespace tide
