#include "planner/finish/spill.h"

#include <algorithm>
#include <set>

namespace tide {
namespace {

// What is alive at an op, while ops are gone through in order.
class Alive {
 public:
  Alive(const Step& step, const Draft& draft) : step_(step), draft_(draft) {}

  [[nodiscard]] Bytes bytes(std::uint32_t stay) const {
    return step_.storage(draft_.stays[stay].storage).bytes.aligned();
  }
  [[nodiscard]] Bytes held() const { return held_; }
  [[nodiscard]] bool empty() const { return alive_.empty(); }
  void rest(std::uint32_t stay) { held_ += bytes(stay); }
  void add(std::uint32_t stay) {
    alive_.emplace(draft_.stays[stay].last, stay);
    held_ += bytes(stay);
  }
  void end_before(std::int32_t op) {
    while (!alive_.empty() && alive_.begin()->first < op) remove(alive_.begin());
  }
  std::uint32_t take_farthest() { return remove(std::prev(alive_.end())); }

 private:
  using Set = std::set<std::pair<std::int32_t, std::uint32_t>>;  // by last op
  std::uint32_t remove(Set::iterator it) {
    const std::uint32_t stay = it->second;
    held_ -= bytes(stay);
    alive_.erase(it);
    return stay;
  }

  const Step& step_;
  const Draft& draft_;
  Set alive_;
  Bytes held_;
};

// The stays that begin within the step and are in host memory, in the order in which they do.
std::vector<std::uint32_t> in_order(const Draft& draft) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t s = 0; s < draft.stays.size(); ++s)
    if (draft.stays[s].tier == Tier::host && draft.stays[s].first != kEntry) order.push_back(s);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return draft.stays[a].first < draft.stays[b].first; });
  return order;
}

// By stay: whether it goes on.
std::vector<bool> choose(const Step& step, const Draft& draft, Bytes limit) {
  std::vector<bool> spilled(draft.stays.size(), false);
  Alive host(step, draft);
  for (std::uint32_t s = 0; s < draft.stays.size(); ++s)
    if (draft.stays[s].tier == Tier::host && draft.stays[s].first == kEntry) host.rest(s);
  for (const std::uint32_t s : in_order(draft)) {
    host.end_before(draft.stays[s].first);
    host.add(s);
    while (host.held() > limit && !host.empty()) spilled[host.take_farthest()] = true;
  }
  return spilled;
}

// By stay that goes on: where to.
std::vector<Tier> share_out(const Step& step, const Draft& draft, const std::vector<bool>& spilled,
                            std::span<const TierBehind> behind) {
  std::vector<Tier> tiers(draft.stays.size(), behind.back().tier);
  std::vector<Alive> alive(behind.size() - 1, Alive(step, draft));
  for (const std::uint32_t s : in_order(draft)) {
    if (!spilled[s]) continue;
    for (std::size_t b = 0; b < alive.size(); ++b) {
      alive[b].end_before(draft.stays[s].first);
      if (alive[b].held() + alive[b].bytes(s) > behind[b].room) continue;
      alive[b].add(s);
      tiers[s] = behind[b].tier;
      break;
    }
  }
  return tiers;
}

}  // namespace

Draft spill(const Step& step, const Draft& draft, std::span<const TierBehind> behind, Bytes host_memory,
            bool everything) {
  const std::vector<bool> spilled = choose(step, draft, everything ? Bytes() : host_memory);
  const std::vector<Tier> tiers = share_out(step, draft, spilled, behind);
  // Which spilled stay a copy belongs to: the newest of its storage that has begun.
  std::vector<std::int32_t> begun(draft.ops.size(), -1);
  for (std::size_t s = 0; s < draft.stays.size(); ++s)
    if (spilled[s]) begun[static_cast<std::size_t>(draft.stays[s].first)] = static_cast<std::int32_t>(s);
  std::vector<std::int32_t> newest(step.storages.size(), -1);

  Draft result;
  std::vector<std::int32_t> moved_to(draft.ops.size());
  const auto add_copy = [&](StorageId storage, Tier from, Tier to) {
    result.ops.push_back(copy_op({storage, from, to}));
    return static_cast<std::int32_t>(result.ops.size()) - 1;
  };
  const auto add_stay = [&](StorageId storage, Tier tier, std::int32_t first, std::int32_t last) {
    result.stays.push_back({storage, tier, first, last, first, last, {}});
    return result.stays.size() - 1;
  };
  std::vector<std::size_t> stay_behind(draft.stays.size(), 0);
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    const Op& op = draft.ops[i];
    const bool copy = op.is_copy();
    if (copy && op.copy().to == Tier::host) newest[op.copy().storage.index()] = begun[i];
    const std::int32_t stay = copy ? newest[op.copy().storage.index()] : -1;
    std::int32_t buffer = -1;
    if (stay >= 0 && op.copy().from == Tier::host) {
      buffer = add_copy(op.copy().storage, tiers[static_cast<std::size_t>(stay)], Tier::host);
      result.stays[stay_behind[static_cast<std::size_t>(stay)]].last = buffer;
      result.stays[stay_behind[static_cast<std::size_t>(stay)]].hold_last = buffer;
    }
    const auto now = static_cast<std::int32_t>(result.ops.size());
    moved_to[i] = now;
    result.ops.push_back(op);
    if (buffer >= 0) add_stay(op.copy().storage, Tier::host, buffer, now);
    if (stay >= 0 && op.copy().to == Tier::host) {
      const Tier tier = tiers[static_cast<std::size_t>(stay)];
      const std::int32_t out = add_copy(op.copy().storage, Tier::host, tier);
      add_stay(op.copy().storage, Tier::host, now, out);
      stay_behind[static_cast<std::size_t>(stay)] = add_stay(op.copy().storage, tier, out, out);
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

void move_to_peer(const Step& step, Bytes room, Bytes host_memory, bool everything, Draft& draft) {
  const std::vector<bool> chosen = choose(step, draft, everything ? Bytes() : host_memory);
  const TierBehind tiers[] = {{Tier::peer, room}, {Tier::host, {}}};
  const std::vector<Tier> share = share_out(step, draft, chosen, tiers);
  std::vector<std::int32_t> begun(draft.ops.size(), -1), newest(step.storages.size(), -1);
  for (std::size_t s = 0; s < draft.stays.size(); ++s) {
    if (!chosen[s] || share[s] != Tier::peer) continue;
    begun[static_cast<std::size_t>(draft.stays[s].first)] = static_cast<std::int32_t>(s);
    draft.stays[s].tier = Tier::peer;
  }
  // A copy belongs to the newest stay of its storage that has begun.
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    if (!draft.ops[i].is_copy()) continue;
    Copy& copy = draft.ops[i].copy();
    std::int32_t& stay = newest[copy.storage.index()];
    if (copy.to == Tier::host) stay = begun[i];
    if (stay < 0) continue;
    (copy.to == Tier::host ? copy.to : copy.from) = Tier::peer;
  }
}

}  // namespace tide
