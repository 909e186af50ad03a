#include "planner/finish/spill.h"

#include <algorithm>
#include <set>

namespace tide {
namespace {

// By stay: whether it goes on to disk.
std::vector<bool> choose(const Step& step, const Draft& draft, Bytes limit) {
  const auto bytes = [&](std::uint32_t s) { return step.storage(draft.stays[s].storage).bytes.aligned(); };
  std::vector<std::uint32_t> order;
  Bytes held;
  for (std::uint32_t s = 0; s < draft.stays.size(); ++s) {
    if (draft.stays[s].tier != Tier::host) continue;
    if (draft.stays[s].first == kEntry)
      held += bytes(s);
    else
      order.push_back(s);
  }
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return draft.stays[a].first < draft.stays[b].first; });
  std::vector<bool> spilled(draft.stays.size(), false);
  std::set<std::pair<std::int32_t, std::uint32_t>> alive;  // by last op
  for (const std::uint32_t s : order) {
    while (!alive.empty() && alive.begin()->first < draft.stays[s].first) {
      held -= bytes(alive.begin()->second);
      alive.erase(alive.begin());
    }
    alive.emplace(draft.stays[s].last, s);
    held += bytes(s);
    while (held > limit && !alive.empty()) {
      const auto farthest = std::prev(alive.end());
      spilled[farthest->second] = true;
      held -= bytes(farthest->second);
      alive.erase(farthest);
    }
  }
  return spilled;
}

}  // namespace

Draft spill_to_disk(const Step& step, const Draft& draft, Bytes host_memory, bool everything) {
  const std::vector<bool> spilled = choose(step, draft, everything ? Bytes() : host_memory);
  // Which spilled stay a copy belongs to: the newest of its storage that has begun.
  std::vector<std::int32_t> begun(draft.ops.size(), -1);
  for (std::size_t s = 0; s < draft.stays.size(); ++s)
    if (spilled[s]) begun[static_cast<std::size_t>(draft.stays[s].first)] = static_cast<std::int32_t>(s);
  std::vector<std::int32_t> newest(step.storages.size(), -1);

  Draft result;
  std::vector<std::int32_t> moved_to(draft.ops.size());
  const auto disk_copy = [&](StorageId storage, Tier from, Tier to) {
    result.ops.push_back(copy_op({storage, from, to}));
    return static_cast<std::int32_t>(result.ops.size()) - 1;
  };
  const auto add_stay = [&](StorageId storage, Tier tier, std::int32_t first, std::int32_t last) {
    result.stays.push_back({storage, tier, first, last, first, last, {}});
    return result.stays.size() - 1;
  };
  std::vector<std::size_t> disk_stay(draft.stays.size(), 0);
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    const Op& op = draft.ops[i];
    const bool copy = op.is_copy();
    if (copy && op.copy().to == Tier::host) newest[op.copy().storage.index()] = begun[i];
    const std::int32_t stay = copy ? newest[op.copy().storage.index()] : -1;
    std::int32_t buffer = -1;
    if (stay >= 0 && op.copy().from == Tier::host) {
      buffer = disk_copy(op.copy().storage, Tier::disk, Tier::host);
      result.stays[disk_stay[static_cast<std::size_t>(stay)]].last = buffer;
      result.stays[disk_stay[static_cast<std::size_t>(stay)]].hold_last = buffer;
    }
    const auto now = static_cast<std::int32_t>(result.ops.size());
    moved_to[i] = now;
    result.ops.push_back(op);
    if (buffer >= 0) add_stay(op.copy().storage, Tier::host, buffer, now);
    if (stay >= 0 && op.copy().to == Tier::host) {
      const std::int32_t out = disk_copy(op.copy().storage, Tier::host, Tier::disk);
      add_stay(op.copy().storage, Tier::host, now, out);
      disk_stay[static_cast<std::size_t>(stay)] = add_stay(op.copy().storage, Tier::disk, out, out);
    }
  }
  const auto renumber = [&](std::int32_t op) {
    if (op < 0) return op;
    return op >= static_cast<std::int32_t>(draft.ops.size()) ? static_cast<std::int32_t>(result.ops.size())
                                                             : moved_to[static_cast<std::size_t>(op)];
  };
  for (std::size_t s = 0; s < draft.stays.size(); ++s) {
    if (spilled[s]) continue;
    DraftStay stay = draft.stays[s];
    stay.first = renumber(stay.first);
    stay.last = renumber(stay.last);
    stay.hold_first = renumber(stay.hold_first);
    stay.hold_last = renumber(stay.hold_last);
    result.stays.push_back(stay);
  }
  return result;
}

}  // namespace tide
