#include "planner/finish/finish.h"

#include <algorithm>

#include "cost/algorithms.h"
#include "memory/placement.h"
#include "planner/finish/spill.h"
#include "planner/finish/waits.h"
#include "planner/leaving.h"
#include "planner/search/keeper.h"
#include "planner/search/ladder.h"

namespace tide {
namespace {

struct Placed {
  Bytes peak;
  std::int32_t peak_op = 0;
};

// Persistent storages are at the bottom of the tier that they enter in, where the recorder put them.
bool is_at_the_bottom(const Step& step, const DraftStay& stay) {
  return stay.first == kEntry && step.storage(stay.storage).persistent;
}

Bytes bottom_of(const Step& step, Tier tier, const Draft& draft) {
  Bytes bottom;
  for (const DraftStay& stay : draft.stays)
    if (stay.tier == tier && is_at_the_bottom(step, stay)) bottom += step.storage(stay.storage).bytes.aligned();
  return bottom;
}

// All other stays, the workspaces of the algorithms chosen so far, and where their addresses go.
struct OnDevice {
  std::vector<Interval> intervals;
  std::vector<Bytes*> targets;
};

OnDevice on_device(const Step& step, Draft& draft, bool held) {
  OnDevice result;
  auto& [intervals, targets] = result;
  for (DraftStay& stay : draft.stays) {
    if (stay.tier != Tier::device || is_at_the_bottom(step, stay)) continue;
    intervals.push_back(
        {held ? stay.hold_first : stay.first, held ? stay.hold_last : stay.last, step.storage(stay.storage).bytes});
    targets.push_back(&stay.address);
  }
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    Op& op = draft.ops[i];
    if (!op.is_run()) continue;
    const Bytes workspace = workspace_bytes(step, op.run());
    if (workspace.is_zero()) continue;
    intervals.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(i), workspace});
    targets.push_back(&op.run().workspace);
  }
  return result;
}

Placed place_on_device(const Step& step, Draft& draft, bool held, const std::optional<Bytes>& enough) {
  const Bytes bottom = bottom_of(step, Tier::device, draft);
  const auto [intervals, targets] = on_device(step, draft, held);
  const bool any = enough && *enough > bottom;
  const Placement placement = any ? place_within(intervals, *enough - bottom) : place(intervals);
  for (std::size_t k = 0; k < targets.size(); ++k) *targets[k] = bottom + placement.addresses[k];
  return {bottom + placement.peak, std::max(live_peak(intervals).op, 0)};
}

// At least; placement may take more.
Bytes live_bytes(const Step& step, Draft& draft) {
  return bottom_of(step, Tier::device, draft) + live_peak(on_device(step, draft, true).intervals).bytes;
}

void take_smallest_algorithms(const Step& step, Draft& draft) {
  for (Op& op : draft.ops)
    if (op.is_run()) op.run().algorithm = smallest_algorithm(step, op.run().task);
}

std::string name_of_run(const Step& step, const Draft& draft, std::int32_t op) {
  for (auto i = static_cast<std::size_t>(op); i < draft.ops.size(); ++i)
    if (draft.ops[i].is_run()) return task_name(step, draft.ops[i].run().task);
  return "";
}

// The addresses in a tier behind the device. Its peak.
Bytes place_in(const Step& step, Tier tier, Draft& draft) {
  const Bytes bottom = bottom_of(step, tier, draft);
  std::vector<Interval> intervals;
  std::vector<DraftStay*> stays;
  for (DraftStay& stay : draft.stays) {
    if (stay.tier != tier || is_at_the_bottom(step, stay)) continue;
    intervals.push_back({stay.first, stay.last, step.storage(stay.storage).bytes});
    stays.push_back(&stay);
  }
  const Placement placement = place(intervals);
  for (std::size_t k = 0; k < stays.size(); ++k) stays[k]->address = bottom + placement.addresses[k];
  return bottom + placement.peak;
}

// There and back.
double round_trip(const CostModel& cost, Tier from, Tier to) {
  const Bytes timed(1 << 20);
  return cost.copy_seconds(timed, from, to) + cost.copy_seconds(timed, to, from);
}

bool is_peer_faster(const CostModel& cost) {
  return round_trip(cost, Tier::device, Tier::peer) < round_trip(cost, Tier::device, Tier::host);
}

// The tiers behind the host that there is a budget of, the fastest first.
std::vector<TierBehind> tiers_behind_host(const CostModel& cost, const PlanningContext& context) {
  std::vector<std::pair<double, TierBehind>> found;
  for (const TierRow& row : kTierTable) {
    if (row.tier == Tier::device || !context.memory[row.tier] || !find_route(Tier::host, row.tier)) continue;
    found.push_back({round_trip(cost, Tier::host, row.tier), {row.tier, *context.memory[row.tier]}});
  }
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.first; });
  std::vector<TierBehind> behind;
  for (const auto& [seconds, tier] : found) behind.push_back(tier);
  return behind;
}

// What another device has room for goes there instead of to the host: everything, or what the host has no room for.
void use_peer(const Step& step, const PlanningContext& context, bool everything, Draft& draft) {
  const std::optional<Bytes>&budget = context.memory[Tier::peer], &host = context.memory[Tier::host];
  const auto is_there = [](const DraftStay& stay) { return stay.tier == Tier::peer; };
  if (!has_peer(context) || std::ranges::any_of(draft.stays, is_there)) return;
  if (!everything && (!host || place_in(step, Tier::host, draft) <= *host)) return;
  aim_lower(ladder::kBehind, [&](std::int64_t percent) {
    Draft tried = draft;
    const Bytes room = percent < 100 ? percent_of(*budget, percent) : *budget;
    move_to_peer(step, room, everything ? Bytes() : *host, everything, tried);
    if (place_in(step, Tier::peer, tried) > *budget) return false;
    draft = std::move(tried);
    return true;
  });
}

// Addresses in the host and behind it. False where a tier is too small.
bool place_behind(const Step& step, const CostModel& cost, const PlanningContext& context, Draft& draft,
                  PlanResult& result) {
  result.floor[Tier::host] = place_in(step, Tier::host, draft);
  if (!context.memory[Tier::host] || result.floor[Tier::host] <= *context.memory[Tier::host]) return true;
  result.short_of = Tier::host;
  std::vector<TierBehind> behind = tiers_behind_host(cost, context);
  if (behind.empty()) return false;
  // The buffers of the copies take room too, so aim lower until all fits.
  Bytes largest;
  for (const DraftStay& stay : draft.stays)
    if (stay.tier == Tier::host && !is_at_the_bottom(step, stay))
      largest = std::max(largest, step.storage(stay.storage).bytes.aligned());
  Draft all = spill(step, draft, behind, Bytes(), true);
  result.floor[Tier::host] = place_in(step, Tier::host, all);
  if (result.floor[Tier::host] > *context.memory[Tier::host]) return false;
  Bytes limit;  // none: all go on
  for (const std::int64_t buffers : {1, 2, 3, 4}) {
    const std::int64_t tried = context.memory[Tier::host]->count() - largest.count() * buffers;
    if (tried <= 0) break;
    Draft attempt = spill(step, draft, behind, Bytes(tried));
    if (place_in(step, Tier::host, attempt) > *context.memory[Tier::host]) continue;
    limit = Bytes(tried);
    break;
  }
  // Addresses may take more than what is alive. The last tier takes what the others have no room for.
  const TierBehind& last = behind.back();
  aim_lower(ladder::kBehind, [&](std::int64_t percent) {
    bool fits = true;
    if (percent < 100)
      for (TierBehind& each : behind) each.room = percent_of(*context.memory[each.tier], percent);
    Draft spilled = spill(step, draft, behind, limit, limit.is_zero());
    place_in(step, Tier::host, spilled);
    for (const TierBehind& each : behind) {
      result.floor[each.tier] = place_in(step, each.tier, spilled);
      fits = fits && (each.tier == last.tier || result.floor[each.tier] <= *context.memory[each.tier]);
    }
    if (fits) draft = std::move(spilled);
    return fits;
  });
  result.short_of = last.tier;
  return result.floor[last.tier] <= *context.memory[last.tier];
}

// Addresses beside and behind the device. False where a tier is too small.
bool place_below(const Step& step, const CostModel& cost, const PlanningContext& context, Draft& draft,
                 PlanResult& result) {
  if (!has_peer(context)) return place_behind(step, cost, context, draft, result);
  // All goes to another device where that is faster, or where less of it does not do.
  for (const bool everything : {is_peer_faster(cost), true}) {
    Draft tried = draft;
    use_peer(step, context, everything, tried);
    result.floor[Tier::peer] = place_in(step, Tier::peer, tried);
    if (!place_behind(step, cost, context, tried, result)) continue;
    draft = std::move(tried);
    return true;
  }
  return false;
}

}  // namespace

PlanResult finish_placed(Step step, Draft draft, const Floor& floor, const CostModel& cost,
                         const PlanningContext& context) {
  PlanResult result = below(floor);
  if (!place_below(step, cost, context, draft, result)) return result;
  result.short_of = Tier::device;
  Phase phase;
  phase.ops = std::move(draft.ops);
  for (const DraftStay& stay : draft.stays)
    phase.residencies.push_back({stay.storage, stay.tier, stay.first, stay.last, stay.address});
  phase.step = std::make_shared<const Step>(std::move(step));
  add_waits(phase);
  result.plan.emplace();
  result.plan->phases.push_back(std::move(phase));
  return result;
}

namespace {

// From a draft whose algorithms and overlap are open: three ways, of which the fastest counts.
class Finisher {
 public:
  // `enough`: where packing may stop.
  Finisher(const Step& step, const CostModel& cost, const PlanningContext& context, std::optional<Bytes> enough)
      : step_(step), cost_(cost), context_(context), memory_(context.memory[Tier::device]), enough_(enough) {}

  PlanResult finish(Draft draft) {
    // Where that changes how long copies take, before anything is held for them.
    if (has_peer(context_) && is_peer_faster(cost_)) use_peer(step_, context_, true, draft);
    if (!draft.settled) take_smallest_algorithms(step_, draft);
    const Placed least = place_on_device(step_, draft, draft.settled && draft.held, enough_);
    floor_ = {least.peak, name_of_run(step_, draft, least.peak_op)};
    if (!fits(least.peak)) return below(floor_);
    if (draft.settled) return finished(std::move(draft));
    if (std::optional<Draft> unlimited = as_unlimited(draft)) return finished(*std::move(unlimited));
    copies_ = std::any_of(draft.ops.begin(), draft.ops.end(), [](const Op& op) { return op.is_copy(); });
    // Overlap comes first, workspaces take the holes that are left.
    std::optional<Draft> overlapped =
        copies_ ? placed_within(draft, [&](Draft& tried, Bytes limit) { hold(tried, limit); }) : std::nullopt;
    if (!overlapped) place_on_device(step_, draft, false, enough_);
    Draft filled = overlapped ? *std::move(overlapped) : draft;
    choose_workspaces(step_, cost_, *memory_, filled);
    if (has_fastest_algorithms(step_, cost_, filled)) return finished(std::move(filled));
    // Or workspaces are placed with all else, before or after what is left to overlap.
    Keeper keeper(cost_);
    keeper.consider("workspaces in holes", finished(std::move(filled)));
    consider(keeper, "workspaces before overlap", draft, [&](Draft& tried, Bytes limit) {
      take_algorithms_within(step_, cost_, limit, tried);
      hold(tried, limit);
    });
    if (copies_)
      consider(keeper, "workspaces after overlap", draft, [&](Draft& tried, Bytes limit) {
        hold(tried, limit);
        take_algorithms_within(step_, cost_, limit, tried);
      });
    return std::move(keeper).take();
  }

 private:
  [[nodiscard]] bool fits(Bytes bytes) const { return !memory_ || bytes <= *memory_; }
  [[nodiscard]] PlanResult finished(Draft complete) const {
    return finish_placed(step_, std::move(complete), floor_, cost_, context_);
  }

  // As with unlimited memory, if that fits.
  [[nodiscard]] std::optional<Draft> as_unlimited(Draft draft) const {
    for (Op& op : draft.ops)
      if (op.is_run()) op.run().algorithm = fastest_algorithm(step_, cost_, op.run().task);
    hold_for_copies(step_, cost_, draft);
    if (!fits(live_bytes(step_, draft)) || !fits(place_on_device(step_, draft, true, enough_).peak))
      return std::nullopt;
    return draft;
  }

  template <typename Prepare>
  [[nodiscard]] std::optional<Draft> placed_within(const Draft& draft, const Prepare& prepare) const {
    std::optional<Draft> placed;
    aim_lower(enough_ ? ladder::kHoldsInHurry : ladder::kHolds, [&](std::int64_t percent) {
      Draft tried = draft;
      prepare(tried, percent_of(*memory_, percent));
      if (place_on_device(step_, tried, true, memory_).peak > *memory_) return false;
      placed = std::move(tried);
      return true;
    });
    return placed;
  }

  void hold(Draft& tried, Bytes limit) const {
    if (!copies_) return;
    hold_for_copies(step_, cost_, tried);
    fit_holds(step_, limit, tried);
  }

  template <typename Prepare>
  void consider(Keeper& keeper, std::string_view name, const Draft& draft, const Prepare& prepare) const {
    std::optional<Draft> tried = placed_within(draft, prepare);
    if (!tried) return;
    choose_workspaces(step_, cost_, *memory_, *tried);
    keeper.consider(name, finished(*std::move(tried)));
  }

  const Step& step_;
  const CostModel& cost_;
  const PlanningContext& context_;
  const std::optional<Bytes>& memory_;
  std::optional<Bytes> enough_;
  Floor floor_;
  bool copies_ = false;
};

}  // namespace

Bytes packed_bytes(const Step& step, Draft& draft) {
  constexpr std::int64_t kTolerance = 100;  // a hundredth above the bound is close enough
  take_smallest_algorithms(step, draft);
  const std::vector<Interval> intervals = on_device(step, draft, false).intervals;
  const Bytes bound = live_peak(intervals).bytes;
  return bottom_of(step, Tier::device, draft) + place_within(intervals, bound + Bytes(bound.count() / kTolerance)).peak;
}

double seconds_at_least(const Step& step, const CostModel& cost, const Draft& draft,
                        const std::optional<Bytes>& memory) {
  const std::vector<std::int64_t> live = memory ? alive_on_device(step, draft, false) : std::vector<std::int64_t>();
  PerLane<double> lanes;
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    const Op& op = draft.ops[i];
    if (op.is_copy())
      lanes[op.lane] += cost.copy_seconds(step.storage(op.copy().storage).bytes, op.copy().from, op.copy().to);
    else if (memory)
      lanes[op.lane] += fastest_seconds_within(step, cost, op.run().task, memory->count() - live[i]);
    else
      lanes[op.lane] += fastest_seconds(step, cost, op.run().task);
  }
  return *std::max_element(lanes.begin(), lanes.end());
}

PlanResult finish_draft(const Step& step, Draft draft, const CostModel& cost, const PlanningContext& context) {
  if (context.floor_is_known && context.memory[Tier::device]) {
    PlanResult result = finish_quickly(step, draft, cost, context);
    if (result.plan || result.short_of != Tier::device) return result;
  }
  return Finisher(step, cost, context, std::nullopt).finish(std::move(draft));
}

PlanResult finish_quickly(const Step& step, Draft draft, const CostModel& cost, const PlanningContext& context) {
  return Finisher(step, cost, context, context.memory[Tier::device]).finish(std::move(draft));
}

}  // namespace tide
