// Turns a plan with copies to host memory into one that goes on to a tier behind it: chosen stays in host
// memory are written there behind the copy out, and read again before the copy in.
#pragma once

#include <random>

#include "support/offload.h"

namespace tide::testing_support {

//   out  [device to host][host to disk]
//   in                                   [disk to host][host to device]
//   host  |--------------------------|    |-----------------------|
//   disk                  |----------------------|
// How many stays were spilled is returned through `spilled`.
inline Plan with_spills(const Plan& plan, std::uint32_t seed, int percent, int& spilled, Tier tier = Tier::disk) {
  std::mt19937 random(seed);
  const Phase& old = plan.phases.front();
  const std::size_t count = old.ops.size();
  std::vector<bool> chosen(old.residencies.size(), false);
  std::vector<std::vector<std::size_t>> leaving(count), returning(count);  // by op: stays
  spilled = 0;
  for (std::size_t r = 0; r < old.residencies.size(); ++r) {
    const Residency& stay = old.residencies[r];
    if (stay.tier != Tier::host || stay.first == kEntry || stay.last >= static_cast<std::int32_t>(count)) continue;
    if (static_cast<int>(random() % 100) >= percent) continue;
    chosen[r] = true;
    leaving[static_cast<std::size_t>(stay.first)].push_back(r);
    returning[static_cast<std::size_t>(stay.last)].push_back(r);
    ++spilled;
  }

  Plan result = plan;
  Phase& phase = result.phases.front();
  phase.ops.clear();
  std::vector<std::int32_t> new_index(count), spill_op(old.residencies.size()), fetch_op(old.residencies.size());
  const auto here = [&] { return static_cast<std::int32_t>(phase.ops.size()); };
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::size_t r : returning[i]) {
      fetch_op[r] = here();
      phase.ops.push_back(waiting_copy(old.residencies[r].storage, tier, Tier::host, {spill_op[r]}));
    }
    new_index[i] = here();
    phase.ops.push_back(old.ops[i]);
    for (std::int32_t& wait : phase.ops.back().waits) wait = new_index[static_cast<std::size_t>(wait)];
    for (const std::size_t r : leaving[i]) {
      spill_op[r] = here();
      phase.ops.push_back(waiting_copy(old.residencies[r].storage, Tier::host, tier, {}));
    }
  }

  phase.residencies.clear();
  Bytes disk;
  for (std::size_t r = 0; r < old.residencies.size(); ++r) {
    Residency stay = old.residencies[r];
    if (stay.first != kEntry) stay.first = new_index[static_cast<std::size_t>(stay.first)];
    stay.last = stay.last >= static_cast<std::int32_t>(count) ? here() : new_index[static_cast<std::size_t>(stay.last)];
    if (!chosen[r]) {
      phase.residencies.push_back(stay);
      continue;
    }
    phase.residencies.push_back({stay.storage, Tier::host, stay.first, spill_op[r], stay.address});
    phase.residencies.push_back({stay.storage, Tier::host, fetch_op[r], stay.last, stay.address});
    phase.residencies.push_back({stay.storage, tier, spill_op[r], fetch_op[r], disk});
    disk += phase.step->storage(stay.storage).bytes.aligned();
  }
  return result;
}

// Bytes of a tier that a plan needs.
inline Bytes tier_bytes(const Plan& plan, Tier tier) {
  Bytes top;
  for (const Residency& r : plan.phases.front().residencies)
    if (r.tier == tier) top = std::max(top, r.address + aligned_bytes(plan.phases.front(), r));
  return top;
}
inline Bytes disk_bytes(const Plan& plan) { return tier_bytes(plan, Tier::disk); }

}  // namespace tide::testing_support
