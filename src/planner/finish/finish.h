// From a draft to a plan: time for copies to overlap, addresses in every tier, convolution
// workspaces in what is left free, and the waits between lanes.
#pragma once

#include "planner/draft/recorder.h"
#include "planner/finish/floor.h"

namespace tide {

// Holds stays longer than they are used where a copy needs the time: what leaves, until
// its copy is over; what comes back, from when its copy should start.
void hold_for_copies(const Step& step, const CostModel& cost, Draft& draft);

// Keeps of the holds what fits: each stay, in order, is held as far as at most `limit` bytes
// are alive.
void fit_holds(const Step& step, Bytes limit, Draft& draft);

// Gives each run the fastest algorithm whose workspace fits into a hole of `memory` at
// that op, besides the stays as they are placed.
void choose_workspaces(const Step& step, const CostModel& cost, Bytes memory, Draft& draft);

// Gives each run the fastest algorithm for whose workspace what is alive at its op, held or used, leaves room
// below `limit`; where it stands is for placement to say.
void take_algorithms_within(const Step& step, const CostModel& cost, Bytes limit, Draft& draft);

[[nodiscard]] bool has_fastest_algorithms(const Step& step, const CostModel& cost, const Draft& draft);

// By op: the bytes on the device of stays from first to last use, or as long as they are held.
[[nodiscard]] std::vector<std::int64_t> alive_on_device(const Step& step, const Draft& draft, bool held);

// The floor is what the draft needs with copies that nothing overlaps and the smallest
// workspaces. Above it, overlap and workspaces take what there is.
[[nodiscard]] PlanResult finish_draft(const Step& step, Draft draft, const CostModel& cost,
                                      const PlanningContext& context);

// For one draft of many: with less effort to pack it, so that the floor is not the least.
// REQUIRES: a budget.
[[nodiscard]] PlanResult finish_quickly(const Step& step, Draft draft, const CostModel& cost,
                                        const PlanningContext& context);

// The device memory that a draft takes with copies that nothing overlaps and the smallest
// workspaces, packed with little effort: to compare drafts by.
[[nodiscard]] Bytes packed_bytes(const Step& step, Draft& draft);

// A time that no plan of a draft beats within so much device memory, if it is bounded: the work of its busiest lane,
// each run with the fastest algorithm for whose workspace what is alive leaves room.
[[nodiscard]] double seconds_at_least(const Step& step, const CostModel& cost, const Draft& draft,
                                      const std::optional<Bytes>& memory);

// For drafts that have their device addresses already: the other tiers and the waits.
[[nodiscard]] PlanResult finish_placed(Step step, Draft draft, const Floor& floor, const CostModel& cost,
                                       const PlanningContext& context);

}  // namespace tide
