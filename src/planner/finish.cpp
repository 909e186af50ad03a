#include "planner/finish.h"

#include <algorithm>

#include "planner/best.h"
#include "planner/layout.h"
#include "planner/spill.h"
#include "planner/waits.h"

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
    if (op.kind != OpKind::run) continue;
    const Bytes workspace = step.algorithms_of(op.task)[op.algorithm].workspace;
    if (workspace.is_zero()) continue;
    intervals.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(i), workspace});
    targets.push_back(&op.workspace);
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
    if (op.kind == OpKind::run) op.algorithm = smallest_algorithm(step, op.task);
}

std::string name_of_run(const Step& step, const Draft& draft, std::int32_t op) {
  for (auto i = static_cast<std::size_t>(op); i < draft.ops.size(); ++i)
    if (draft.ops[i].kind == OpKind::run) return task_name(step, draft.ops[i].task);
  return "";
}

// Host and disk addresses. The peak of each.
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

// Host and disk addresses. False where a tier is too small.
bool place_below(const Step& step, const PlannerOptions& options, Draft& draft, PlanResult& result) {
  result.host_floor = place_in(step, Tier::host, draft);
  if (!options.host_memory || result.host_floor <= *options.host_memory) return true;
  result.short_of = Tier::host;
  if (!options.disk_memory) return false;
  // A disk tier: the buffers of the copies take room too, so aim lower until all fits.
  Bytes largest;
  for (const DraftStay& stay : draft.stays)
    if (stay.tier == Tier::host && !is_at_the_bottom(step, stay))
      largest = std::max(largest, step.storage(stay.storage).bytes.aligned());
  Draft all = spill_to_disk(step, draft, Bytes(), true);
  result.host_floor = place_in(step, Tier::host, all);
  if (result.host_floor > *options.host_memory) return false;
  Draft spilled = std::move(all);
  for (const std::int64_t buffers : {1, 2, 3, 4}) {
    const std::int64_t limit = options.host_memory->count() - largest.count() * buffers;
    if (limit <= 0) break;
    Draft attempt = spill_to_disk(step, draft, Bytes(limit));
    if (place_in(step, Tier::host, attempt) > *options.host_memory) continue;
    spilled = std::move(attempt);
    break;
  }
  draft = std::move(spilled);
  const Bytes disk = place_in(step, Tier::disk, draft);
  result.short_of = Tier::disk;
  result.disk_floor = disk;
  return disk <= *options.disk_memory;
}

}  // namespace

PlanResult finish_placed(Step step, Draft draft, Bytes floor, std::string bottleneck, const PlannerOptions& options) {
  PlanResult result;
  result.floor = floor;
  result.bottleneck_task = std::move(bottleneck);
  if (!place_below(step, options, draft, result)) return result;
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

// `enough`: where packing may stop.
PlanResult finish(Step step, Draft draft, const CostModel& cost, const PlannerOptions& options,
                  const std::optional<Bytes>& enough) {
  if (!draft.settled) take_smallest_algorithms(step, draft);
  const Placed least = place_on_device(step, draft, false, enough);
  std::string bottleneck = name_of_run(step, draft, least.peak_op);
  if (options.memory && least.peak > *options.memory) {
    PlanResult result;
    result.floor = least.peak;
    result.bottleneck_task = std::move(bottleneck);
    return result;
  }
  if (draft.settled)
    return finish_placed(std::move(step), std::move(draft), least.peak, std::move(bottleneck), options);
  const auto finished = [&](Draft complete) {
    return finish_placed(step, std::move(complete), least.peak, bottleneck, options);
  };
  // As with unlimited memory, if that fits.
  Draft unlimited = draft;
  for (Op& op : unlimited.ops)
    if (op.kind == OpKind::run) op.algorithm = fastest_algorithm(step, cost, op.task);
  hold_for_copies(step, cost, unlimited);
  const auto fits = [&](Bytes bytes) { return !options.memory || bytes <= *options.memory; };
  if (fits(live_bytes(step, unlimited)) && fits(place_on_device(step, unlimited, true, enough).peak))
    return finished(std::move(unlimited));
  const bool copies =
      std::any_of(draft.ops.begin(), draft.ops.end(), [](const Op& op) { return op.kind == OpKind::copy; });
  // Placement loses a little: aim lower until it fits.
  const auto placed_within = [&](const auto& prepare) -> std::optional<Draft> {
    for (const std::int64_t percent : {100, 97, 93, 85}) {
      Draft tried = draft;
      prepare(tried, Bytes(options.memory->count() / 100 * percent));
      if (place_on_device(step, tried, true, options.memory).peak <= *options.memory) return tried;
    }
    return std::nullopt;
  };
  const auto hold = [&](Draft& tried, Bytes limit) {
    if (!copies) return;
    hold_for_copies(step, cost, tried);
    fit_holds(step, limit, tried);
  };
  // Overlap comes first, workspaces take the holes that are left.
  std::optional<Draft> overlapped = copies ? placed_within(hold) : std::nullopt;
  if (!overlapped) place_on_device(step, draft, false, enough);
  Draft filled = overlapped ? *std::move(overlapped) : draft;
  choose_workspaces(step, cost, *options.memory, filled);
  if (has_fastest_algorithms(step, cost, filled)) return finished(std::move(filled));
  // Or workspaces are placed with all else, before or after what is left to overlap.
  Best best(cost);
  best.offer(finished(std::move(filled)));
  const auto offer = [&](const auto& prepare) {
    std::optional<Draft> tried = placed_within(prepare);
    if (!tried) return;
    choose_workspaces(step, cost, *options.memory, *tried);
    best.offer(finished(*std::move(tried)));
  };
  offer([&](Draft& tried, Bytes limit) {
    take_algorithms_within(step, cost, limit, tried);
    hold(tried, limit);
  });
  if (copies)
    offer([&](Draft& tried, Bytes limit) {
      hold(tried, limit);
      take_algorithms_within(step, cost, limit, tried);
    });
  return std::move(best).take();
}

}  // namespace

Bytes packed_bytes(const Step& step, Draft& draft) {
  constexpr std::int64_t kTolerance = 100;  // a hundredth above the bound is close enough
  take_smallest_algorithms(step, draft);
  const std::vector<Interval> intervals = on_device(step, draft, false).intervals;
  const Bytes bound = live_peak(intervals).bytes;
  return bottom_of(step, Tier::device, draft) + place_within(intervals, bound + Bytes(bound.count() / kTolerance)).peak;
}

PlanResult finish_draft(Step step, Draft draft, const CostModel& cost, const PlannerOptions& options) {
  return finish(std::move(step), std::move(draft), cost, options, std::nullopt);
}

PlanResult finish_quickly(Step step, Draft draft, const CostModel& cost, const PlannerOptions& options) {
  return finish(std::move(step), std::move(draft), cost, options, options.memory);
}

}  // namespace tide
