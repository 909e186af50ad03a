#include "planner/finish/waits.h"

#include <algorithm>
#include <array>
#include <map>

namespace tide {
namespace {

// By lane: an op and all before it on that lane; -1: none.
using Front = PerLane<std::int32_t>;

Front nothing() { return Front(-1); }

void raise(Front& front, const Front& other) {
  for (const Lane lane : kLaneTable) front[lane] = std::max(front[lane], other[lane]);
}

// What was done with the bytes of one stay so far.
struct History {
  Front touches = nothing();  // by anyone
  Front reads = nothing();    // since the last write
  std::int32_t write = -1;
};

// Who had which addresses last. Owners are residencies, or -1 - op for a workspace.
class Owners {
 public:
  template <typename Visit>
  void take(std::int64_t begin, std::int64_t end, std::int32_t owner, Visit&& visit) {
    if (begin >= end) return;
    auto it = map_.upper_bound(begin);
    if (it != map_.begin() && std::prev(it)->second.end > begin) --it;
    while (it != map_.end() && it->first < end) {
      const std::int64_t old_begin = it->first;
      const Piece old = it->second;
      visit(old.owner);
      it = map_.erase(it);
      if (old_begin < begin) map_.emplace(old_begin, Piece{begin, old.owner});
      if (old.end > end) it = map_.emplace(end, Piece{old.end, old.owner}).first;
    }
    map_.emplace(begin, Piece{end, owner});
  }

 private:
  struct Piece {
    std::int64_t end;
    std::int32_t owner;
  };
  std::map<std::int64_t, Piece> map_;
};

class Weaver {
 public:
  explicit Weaver(Phase& phase) : phase_(phase), step_(*phase.step), histories_(phase.residencies.size()) {
    for (auto& tier : current_) tier.assign(step_.storages.size(), -1);
    for (std::uint32_t r = 0; r < phase.residencies.size(); ++r) order_.push_back(r);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return phase.residencies[a].first < phase.residencies[b].first;
    });
  }

  void run() {
    begin_stays(kEntry);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(phase_.ops.size()); ++i) {
      wanted_ = nothing();
      begin_stays(i);
      Op& op = phase_.ops[static_cast<std::size_t>(i)];
      if (op.is_run())
        weave_run(i, op);
      else
        weave_copy(i, op);
      settle(i, op);
    }
  }

 private:
  std::int32_t& current(Tier tier, StorageId storage) { return current_[tier][storage.index()]; }
  History& history(Tier tier, StorageId storage) {
    return histories_[static_cast<std::size_t>(current(tier, storage))];
  }

  void want(std::int32_t op) {
    if (op >= 0) {
      std::int32_t& lane = wanted_[phase_.ops[static_cast<std::size_t>(op)].lane];
      lane = std::max(lane, op);
    }
  }

  void want_owner(std::int32_t owner) {
    if (owner < 0)
      want(-1 - owner);
    else
      raise(wanted_, histories_[static_cast<std::size_t>(owner)].touches);
  }

  void begin_stays(std::int32_t op) {
    for (; next_ < order_.size() && phase_.residencies[order_[next_]].first == op; ++next_) {
      const Residency& r = phase_.residencies[order_[next_]];
      const std::int64_t begin = r.address.count();
      owners_[r.tier].take(begin, begin + aligned_bytes(phase_, r).count(), static_cast<std::int32_t>(order_[next_]),
                           [&](std::int32_t owner) { want_owner(owner); });
      current(r.tier, r.storage) = static_cast<std::int32_t>(order_[next_]);
      if (op >= 0) begun_.push_back(static_cast<std::int32_t>(order_[next_]));
    }
  }

  void read(std::int32_t op, Lane lane, History& history) {
    want(history.write);
    history.reads[lane] = history.touches[lane] = op;
  }

  void write(std::int32_t op, Lane lane, History& history) {
    want(history.write);
    raise(wanted_, history.reads);
    history.reads = nothing();
    history.write = op;
    history.touches[lane] = op;
  }

  void weave_run(std::int32_t i, const Op& op) {
    const Lane lane = op.lane;
    const Bytes workspace = workspace_bytes(step_, op.run()).aligned();
    owners_[Tier::device].take(op.run().workspace.count(), (op.run().workspace + workspace).count(), -1 - i,
                               [&](std::int32_t owner) { want_owner(owner); });
    const auto operands = step_.operands_of(op.run().task);
    for (const Operand& operand : operands)
      if (operand.access != Access::write) read(i, lane, history(Tier::device, step_.tensor(operand.tensor).storage));
    for (const Operand& operand : operands)
      if (operand.access != Access::read) write(i, lane, history(Tier::device, step_.tensor(operand.tensor).storage));
  }

  void weave_copy(std::int32_t i, const Op& op) {
    const Lane lane = op.lane;
    read(i, lane, history(op.copy().from, op.copy().storage));
    write(i, lane, history(op.copy().to, op.copy().storage));
  }

  // Turns what is wanted into waits, less what the lane knows already.
  void settle(std::int32_t i, Op& op) {
    const Lane own = op.lane;
    // A stay begins with its first op: whoever uses it later must know that op to be over.
    for (const std::int32_t r : begun_) {
      History& history = histories_[static_cast<std::size_t>(r)];
      if (history.write < 0) history.write = i;
      history.touches[own] = i;
    }
    begun_.clear();
    Front& known = known_[own];
    op.waits.clear();
    // The newest first, as it may imply the others.
    std::array<Lane, kLanes> lanes = kLaneTable;
    std::sort(lanes.begin(), lanes.end(), [&](Lane a, Lane b) { return wanted_[a] > wanted_[b]; });
    for (const Lane lane : lanes) {
      const std::int32_t wait = wanted_[lane];
      if (lane == own || wait <= known[lane]) continue;
      op.waits.push_back(wait);
      raise(known, fronts_[static_cast<std::size_t>(wait)]);
    }
    known[own] = i;
    fronts_.push_back(known);
  }

  Phase& phase_;
  const Step& step_;
  std::vector<History> histories_;              // by residency
  PerTier<std::vector<std::int32_t>> current_;  // by tier and storage: its newest residency
  std::vector<std::uint32_t> order_;            // residencies by first op
  std::size_t next_ = 0;
  PerTier<Owners> owners_;
  PerLane<Front> known_{nothing()};  // by lane: what its newest op knows to be over, itself included
  std::vector<Front> fronts_;        // the same by op
  std::vector<std::int32_t> begun_;  // residencies that begin with the op at hand
  Front wanted_ = nothing();
};

}  // namespace

void add_waits(Phase& phase) {
  // Ops wait for ops of other lanes alone.
  const auto computes = [](const Op& op) { return op.lane == Lane::compute; };
  if (std::ranges::all_of(phase.ops, computes)) {
    for (Op& op : phase.ops) op.waits.clear();
    return;
  }
  Weaver(phase).run();
}

}  // namespace tide
