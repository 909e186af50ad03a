// A sweep over addresses: stays in the order in which they begin, each taking its range
// from whoever had it. It is enough to look at the newest owner of every byte, because an
// older one was proved to be over before that owner began.
#include <algorithm>
#include <map>

#include "plan/findings.h"

namespace tide::checker {
namespace {

// A residency, or the workspace of one op (residency -1).
struct Claim {
  std::int32_t first = 0;
  std::int32_t residency = -1;
  std::int64_t begin = 0, end = 0;
  bool forever = false;  // outlives the phase
};

class Sweep {
 public:
  Sweep(const Phase& phase, const std::vector<Clock>& clocks, const Touches& touches, Findings& findings)
      : phase_(phase), clocks_(clocks), touches_(touches), findings_(findings) {}

  void run(std::vector<Claim> claims) {
    std::stable_sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) { return a.first < b.first; });
    for (const Claim& claim : claims) {
      if (findings_.full()) return;
      if (claim.begin < claim.end) take(claim);
    }
  }

 private:
  struct Owned {
    std::int64_t end;
    Claim owner;
  };

  void take(const Claim& claim) {
    auto it = owned_.upper_bound(claim.begin);
    if (it != owned_.begin() && std::prev(it)->second.end > claim.begin) --it;
    while (it != owned_.end() && it->first < claim.end) {
      const std::int64_t begin = it->first;
      const Owned old = it->second;
      if (!over(old.owner, claim)) report(old.owner, claim);
      it = owned_.erase(it);
      if (begin < claim.begin) owned_.emplace(begin, Owned{claim.begin, old.owner});
      if (old.end > claim.end) it = owned_.emplace(claim.end, Owned{old.end, old.owner}).first;
    }
    owned_.emplace(claim.begin, Owned{claim.end, claim});
  }

  // Whether every op that touches `old`, and the ops that bound its stay, are over before
  // `claim` begins.
  [[nodiscard]] bool over(const Claim& old, const Claim& claim) const {
    if (old.forever || claim.first < 0) return false;
    if (old.residency < 0) return over_before(phase_, clocks_, old.first, claim.first);
    const Residency& residency = phase_.residencies[static_cast<std::size_t>(old.residency)];
    if (!over_before(phase_, clocks_, residency.first, claim.first)) return false;
    if (!over_before(phase_, clocks_, residency.last, claim.first)) return false;
    for (const std::int32_t touch : touches_[static_cast<std::size_t>(old.residency)])
      if (!over_before(phase_, clocks_, touch, claim.first)) return false;
    return true;
  }

  void report(const Claim& old, const Claim& claim) {
    findings_.add(FindingKind::overlap, "{} at {}..{} and {} at {}..{} may be alive together at {}", name(old),
                  old.begin, old.end, name(claim), claim.begin, claim.end, op_name(phase_, claim.first));
  }

  [[nodiscard]] std::string name(const Claim& claim) const {
    if (claim.residency < 0) return fmt::format("the workspace of {}", op_name(phase_, claim.first));
    return storage_name(*phase_.step, phase_.residencies[static_cast<std::size_t>(claim.residency)].storage);
  }

  const Phase& phase_;
  const std::vector<Clock>& clocks_;
  const Touches& touches_;
  Findings& findings_;
  std::map<std::int64_t, Owned> owned_;  // by begin, disjoint
};

}  // namespace

void check_addresses(const Phase& phase, const std::vector<Clock>& clocks, const Touches& touches, Findings& findings) {
  for (const TierRow& row : kTierTable) {
    std::vector<Claim> claims;
    for (std::size_t r = 0; r < phase.residencies.size(); ++r) {
      const Residency& residency = phase.residencies[r];
      if (residency.tier != row.tier) continue;
      const std::int64_t begin = residency.address.count();
      claims.push_back({residency.first, static_cast<std::int32_t>(r), begin,
                        begin + aligned_bytes(phase, residency).count(),
                        residency.last >= static_cast<std::int32_t>(phase.ops.size())});
    }
    if (row.tier == Tier::device) {
      for (std::size_t i = 0; i < phase.ops.size(); ++i) {
        const Op& op = phase.ops[i];
        if (!op.is_run()) continue;
        const Bytes workspace = workspace_bytes(*phase.step, op.run());
        if (workspace.is_zero()) continue;
        const std::int64_t begin = op.run().workspace.count();
        claims.push_back({static_cast<std::int32_t>(i), -1, begin, begin + workspace.aligned().count(), false});
      }
    }
    Sweep(phase, clocks, touches, findings).run(std::move(claims));
  }
}

}  // namespace tide::checker
