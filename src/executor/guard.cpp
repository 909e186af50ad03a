#include "executor/guard.h"

#include <algorithm>
#include <cstring>

namespace tide {
namespace {

constexpr int kPoison = 0xFF;  // as f32 and bf16: NaN
constexpr auto kCanary = std::byte{0xCA};

}  // namespace

Guard::Guard(const Phase& phase, std::vector<std::byte*> residencies, std::vector<std::byte*> workspaces)
    : phase_(phase), begins_(phase.ops.size()), ends_(phase.ops.size()), written_(phase.ops.size()) {
  for (std::uint32_t r = 0; r < phase.residencies.size(); ++r) {
    const Residency& residency = phase.residencies[r];
    const Storage& storage = phase.step->storage(residency.storage);
    regions_.push_back({residencies[r], storage.bytes.size(), storage.bytes.aligned().size(), residency.storage,
                        residency.first == kEntry && storage.entry.valid()});
    if (residency.first == kEntry)
      entries_.push_back(r);
    else
      begins_[static_cast<std::size_t>(residency.first)].push_back(r);
    if (residency.last >= 0 && static_cast<std::size_t>(residency.last) < phase.ops.size())
      ends_[static_cast<std::size_t>(residency.last)].push_back(r);
  }
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const Op& op = phase.ops[i];
    Region region;
    if (op.kind == OpKind::run) {
      const Bytes bytes = phase.step->algorithms_of(op.task)[op.algorithm].workspace;
      if (!bytes.is_zero()) region = {workspaces[i], bytes.size(), bytes.aligned().size(), StorageId(), false};
    }
    workspaces_.push_back(region);
  }
  // What each op writes, found by playing the stays of the device tier.
  std::vector<std::int32_t> current(phase.step->storages.size(), -1);
  for (const std::uint32_t r : entries_)
    if (phase.residencies[r].tier == Tier::device) current[phase.residencies[r].storage.index()] = static_cast<std::int32_t>(r);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    for (const std::uint32_t r : begins_[i])
      if (phase.residencies[r].tier == Tier::device) current[phase.residencies[r].storage.index()] = static_cast<std::int32_t>(r);
    if (phase.ops[i].kind != OpKind::run) continue;
    for (const Operand& operand : phase.step->operands_of(phase.ops[i].task))
      if (operand.access != Access::read)
        written_[i].push_back(static_cast<std::uint32_t>(current[phase.step->tensor(operand.tensor).storage.index()]));
  }
}

void Guard::fill(const Region& region) const { std::memset(region.address, kPoison, region.bytes); }

void Guard::set_canary(const Region& region) const {
  std::fill(region.address + region.bytes, region.address + region.aligned, kCanary);
}

void Guard::check(const Region& region, std::size_t op) const {
  for (std::size_t at = region.bytes; at < region.aligned; ++at) {
    if (region.address[at] == kCanary) continue;
    std::string name = "its workspace";
    for (std::size_t t = 0; t < phase_.step->tensors.size(); ++t)
      if (region.storage.valid() && phase_.step->tensors[t].storage == region.storage) name = tensor_name(*phase_.step, TensorId(t));
    throw Error("{} wrote {} bytes past the end of {}", task_name(*phase_.step, phase_.ops[op].task), at - region.bytes + 1, name);
  }
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
  if (workspaces_[op].address != nullptr) {
    fill(workspaces_[op]);
    set_canary(workspaces_[op]);
  }
}

void Guard::after(std::size_t op) {
  for (const std::uint32_t r : written_[op]) check(regions_[r], op);
  if (workspaces_[op].address != nullptr) check(workspaces_[op], op);
  for (const std::uint32_t r : ends_[op]) {
    check(regions_[r], op);
    fill(regions_[r]);
  }
}

}  // namespace tide
