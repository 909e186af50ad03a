#include "executor/guard.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace tide {
namespace {

constexpr int kPoison = 0xFF;  // as f32 and bf16: NaN
constexpr auto kCanary = std::byte{0xCA};

}  // namespace

Guard::Guard(const Phase& phase, std::vector<std::byte*> residencies, std::vector<std::byte*> workspaces)
    : phase_(phase), begins_(phase.ops.size()), ends_(phase.ops.size()), touched_(phase.ops.size()) {
  for (std::uint32_t r = 0; r < phase.residencies.size(); ++r) {
    const Residency& residency = phase.residencies[r];
    const Storage& storage = phase.step->storage(residency.storage);
    regions_.push_back({residencies[r], storage.bytes.size(), storage.bytes.aligned().size(), residency.storage,
                        residency.first == kEntry && storage.entry.valid()});
    if (residency.first == kEntry)
      entries_.push_back(r);
    else
      begins_[static_cast<std::size_t>(residency.first)].push_back(r);
    if (residency.last < 0) continue;
    if (static_cast<std::size_t>(residency.last) < phase.ops.size())
      ends_[static_cast<std::size_t>(residency.last)].push_back(r);
    else
      exits_.push_back(r);
  }
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const Op& op = phase.ops[i];
    Region region;
    if (op.is_run()) {
      const Bytes bytes = workspace_bytes(*phase.step, op.run());
      if (!bytes.is_zero()) region = {workspaces[i], bytes.size(), bytes.aligned().size(), StorageId(), false};
    }
    workspaces_.push_back(region);
  }
  find_touched();
}

// Which stays each op reads or writes, found by playing the stays.
void Guard::find_touched() {
  PerTier<std::vector<std::int32_t>> current;
  for (auto& tier : current) tier.assign(phase_.step->storages.size(), -1);
  const auto now = [&](Tier tier, StorageId storage) -> std::int32_t& { return current[tier][storage.index()]; };
  const auto enter = [&](std::uint32_t r) {
    now(phase_.residencies[r].tier, phase_.residencies[r].storage) = static_cast<std::int32_t>(r);
  };
  for (const std::uint32_t r : entries_) enter(r);
  for (std::size_t i = 0; i < phase_.ops.size(); ++i) {
    const Op& op = phase_.ops[i];
    for (const std::uint32_t r : begins_[i]) enter(r);
    const auto touch = [&](Tier tier, StorageId storage) {
      const std::int32_t r = now(tier, storage);
      if (r >= 0) touched_[i].push_back(static_cast<std::uint32_t>(r));
    };
    if (op.is_run()) {
      for (const Operand& operand : phase_.step->operands_of(op.run().task))
        touch(Tier::device, phase_.step->tensor(operand.tensor).storage);
    } else {
      touch(op.copy().from, op.copy().storage);
      touch(op.copy().to, op.copy().storage);
    }
    for (const std::uint32_t r : ends_[i]) now(phase_.residencies[r].tier, phase_.residencies[r].storage) = -1;
  }
}

void Guard::fill(const Region& region) const {
  if (region.address != nullptr) std::memset(region.address, kPoison, region.bytes);
}

void Guard::set_canary(const Region& region) const {
  if (region.address == nullptr) return;
  std::fill(region.address + region.bytes, region.address + region.aligned, kCanary);
}

template <typename Who>
void Guard::check(const Region& region, const Who& who) const {
  if (region.address == nullptr) return;
  const std::span<const std::byte> canary(region.address + region.bytes, region.aligned - region.bytes);
  const auto damage = std::find_if(canary.begin(), canary.end(), [](std::byte b) { return b != kCanary; });
  if (damage == canary.end()) return;
  throw Error("{} wrote {} bytes past the end of {}", who(), damage - canary.begin() + 1,
              region.storage.valid() ? name(region.storage) : "its workspace");
}

std::string Guard::name(StorageId storage) const {
  for (std::size_t t = 0; t < phase_.step->tensors.size(); ++t)
    if (phase_.step->tensors[t].storage == storage) return tensor_name(*phase_.step, TensorId(t));
  return fmt::format("storage {}", storage.value());
}

std::string Guard::name(const Op& op) const {
  return op.is_run() ? task_name(*phase_.step, op.run().task) : fmt::format("the copy of {}", name(op.copy().storage));
}

void Guard::begin_step() {
  for (const std::uint32_t r : entries_) {
    if (!regions_[r].keeps && !phase_.step->storage(regions_[r].storage).persistent) fill(regions_[r]);
    set_canary(regions_[r]);
  }
}

void Guard::before(std::size_t op) {
  for (const std::uint32_t r : begins_[op]) {
    fill(regions_[r]);
    set_canary(regions_[r]);
  }
  // Damage by an op that had nothing to do with this stay comes to light here at the latest.
  for (const std::uint32_t r : touched_[op])
    check(regions_[r], [&] { return fmt::format("something before {}", name(phase_.ops[op])); });
  if (workspaces_[op].address == nullptr) return;
  fill(workspaces_[op]);
  set_canary(workspaces_[op]);
}

void Guard::after(std::size_t op) {
  const auto who = [&] { return name(phase_.ops[op]); };
  for (const std::uint32_t r : touched_[op]) check(regions_[r], who);
  if (workspaces_[op].address != nullptr) check(workspaces_[op], who);
  for (const std::uint32_t r : ends_[op]) fill(regions_[r]);
}

void Guard::end_step() {
  for (const std::uint32_t r : exits_) check(regions_[r], [] { return "something in this step"; });
}

}  // namespace tide
