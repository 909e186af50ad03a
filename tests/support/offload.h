// Turns a plan of one lane into one with copies: chosen storages leave for the host in a
// gap between two uses and come back before the second, on lanes of their own with waits.
// Device addresses stay reserved, so the result is valid whatever is chosen.
#pragma once

#include <algorithm>
#include <random>

#include "plan/plan.h"

namespace tide::testing_support {

inline Op waiting_copy(StorageId storage, Tier from, Tier to, std::vector<std::int32_t> waits) {
  Op copy = copy_op({storage, from, to});
  copy.waits = std::move(waits);
  return copy;
}

// How many storages were moved is returned through `moved`.
inline Plan with_offloads(const Plan& plan, std::uint32_t seed, int percent, int& moved) {
  std::mt19937 random(seed);
  const Phase& old = plan.phases.front();
  const Step& step = *old.step;

  // The uses of each storage, in order.
  std::vector<std::vector<std::int32_t>> uses(step.storages.size());
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(old.ops.size()); ++i)
    for (const Operand& operand : step.operands_of(old.ops[static_cast<std::size_t>(i)].run().task)) {
      auto& list = uses[step.tensor(operand.tensor).storage.index()];
      if (list.empty() || list.back() != i) list.push_back(i);
    }
  struct Move {
    StorageId storage;
    std::int32_t leave_after, back_before;
  };
  std::vector<Move> moves;
  for (std::size_t s = 0; s < uses.size(); ++s) {
    if (step.storages[s].persistent || step.storages[s].entry.valid()) continue;
    for (std::size_t k = 1; k < uses[s].size(); ++k)
      if (uses[s][k] - uses[s][k - 1] > 3 && static_cast<int>(random() % 100) < percent) {
        moves.push_back({StorageId(s), uses[s][k - 1], uses[s][k]});
        break;
      }
  }
  moved = static_cast<int>(moves.size());

  // New order: each copy out right after the use, each copy in right before the next.
  Plan result = plan;
  Phase& phase = result.phases.front();
  phase.ops.clear();
  std::vector<std::int32_t> new_index(old.ops.size());
  std::vector<std::int32_t> out_op(moves.size()), in_op(moves.size());
  for (std::size_t i = 0; i < old.ops.size(); ++i) {
    std::vector<std::int32_t> waits;
    for (std::size_t m = 0; m < moves.size(); ++m) {
      if (moves[m].back_before != static_cast<std::int32_t>(i)) continue;
      in_op[m] = static_cast<std::int32_t>(phase.ops.size());
      waits.push_back(in_op[m]);
      phase.ops.push_back(waiting_copy(moves[m].storage, Tier::host, Tier::device,
                                       {out_op[m], new_index[static_cast<std::size_t>(moves[m].leave_after)]}));
    }
    new_index[i] = static_cast<std::int32_t>(phase.ops.size());
    phase.ops.push_back(old.ops[i]);
    phase.ops.back().waits = waits;
    for (std::size_t m = 0; m < moves.size(); ++m) {
      if (moves[m].leave_after != static_cast<std::int32_t>(i)) continue;
      out_op[m] = static_cast<std::int32_t>(phase.ops.size());
      phase.ops.push_back(waiting_copy(moves[m].storage, Tier::device, Tier::host, {new_index[i]}));
    }
  }

  const auto renumber = [&](std::int32_t op) {
    if (op == kEntry) return op;
    return op >= static_cast<std::int32_t>(old.ops.size()) ? static_cast<std::int32_t>(phase.ops.size())
                                                           : new_index[static_cast<std::size_t>(op)];
  };
  phase.residencies.clear();
  Bytes host;  // above what is there already
  for (const Residency& r : old.residencies)
    if (r.tier == Tier::host) host = std::max(host, r.address + aligned_bytes(old, r));
  for (const Residency& r : old.residencies) {
    Residency renumbered = r;
    renumbered.first = renumber(r.first);
    renumbered.last = renumber(r.last);
    const auto it =
        std::find_if(moves.begin(), moves.end(), [&](const Move& move) { return move.storage == r.storage; });
    if (it == moves.end()) {
      phase.residencies.push_back(renumbered);
      continue;
    }
    const auto m = static_cast<std::size_t>(it - moves.begin());
    Residency before = renumbered;
    before.last = out_op[m];
    Residency after = renumbered;
    after.first = in_op[m];
    phase.residencies.push_back(before);
    phase.residencies.push_back(after);
    phase.residencies.push_back({r.storage, Tier::host, out_op[m], in_op[m], host});
    host += step.storage(r.storage).bytes.aligned();
  }
  // What the next tenant of an address must wait for: the copies that may still use it.
  // Every compute op waits for all copies out that are over in this order by then.
  std::int32_t newest_out = -1;
  std::int32_t newest_in = -1;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    Op& op = phase.ops[i];
    if (op.is_copy()) {
      (op.lane == Lane::out ? newest_out : newest_in) = static_cast<std::int32_t>(i);
      continue;
    }
    for (const std::int32_t wait : {newest_out, newest_in})
      if (wait >= 0 && std::find(op.waits.begin(), op.waits.end(), wait) == op.waits.end()) op.waits.push_back(wait);
  }
  result.memory[Tier::host] = host;
  return result;
}

}  // namespace tide::testing_support
