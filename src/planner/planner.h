// Planning: step + cost + budgets -> Plan. How one step is planned is a policy, one file each in policies/; what else
// is open about a plan is searched for around it (search/search.h). Nothing here knows a device.
#pragma once

#include <any>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cost/model.h"
#include "planner/options.h"
#include "planner/search/rungs.h"

namespace tide {

// One way that was tried.
struct Trial {
  std::string name;
  std::int32_t depth = 0;         // of what it was tried for
  std::optional<double> seconds;  // of its plan; none: it does not fit
  double took = 0;                // seconds to plan
  bool kept = false;              // whether it was the best of those beside it
};

// A plan, or why there is none: that a budget is too small is an answer, not an error.
struct PlanResult {
  std::optional<Plan> plan = {};
  // The smallest device budget this policy can work with; and with the budgets of the tiers before it, the smallest of
  // each other tier.
  PerTier<Bytes> floor = {};
  Tier short_of = Tier::device;      // which of them was too small, where there is no plan
  std::string bottleneck_task = {};  // the task that needs it
  // Of the plan, as the simulator says; none: not asked yet, or the plan was changed since (search/keeper.h).
  std::optional<double> seconds = {};
  double plan_seconds = 0;  // without the checker
  double check_seconds = 0;
  std::vector<Trial> trials = {};  // in the order in which they were tried
};

class Excess;

// What a policy plans by: what was asked for, and what the search around it has settled.
struct PlanningContext : PlannerOptions {
  PlanningContext() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): nothing settled yet
  PlanningContext(PlannerOptions options) : PlannerOptions(std::move(options)) {}

  // The persistent storages that rest in host memory, by their number in table order, so that all step variants of a
  // job can agree on it. None: not decided yet.
  std::optional<std::vector<bool>> rest_in_host = {};
  // Makes the rounds of a step whose batch is cut, or the whole step that works on sub-batches (search/rounds.h); none:
  // the batch stays whole.
  std::function<Step(std::int64_t samples, Part part)> cut = {};

  // Where a policy needs more than the device's budget, but no more than this, it is planned at its floor;
  // the second where it cuts the batch.
  Bytes floor_at_most = {}, cut_floor_at_most = {};
  bool floor_is_known = false;  // nobody asks for the floor of a plan that fits
  // The rest is auto's. Plans that take as long are of no use: what is proved not to be faster is left out, so that
  // there may be no plan though the floor is within the budget.
  double seconds_to_beat = std::numeric_limits<double>::infinity();
  const Excess* excess = nullptr;   // of this step, where somebody has worked it out
  bool tries_cuts = true;           // sub-batches
  bool others_apart = false;        // whoever asks tries the other policies himself
  std::any* remembered = nullptr;   // what it worked out about this step at another budget
  std::optional<Rungs> rungs = {};  // of which the budget is one, less what is reserved
};

// What a policy function returns: the plan it would make with no budget beyond the context's, and the floor. It leaves
// `plan` empty where the budget is below the floor.
using PolicyFunction = PlanResult (*)(Step step, const CostModel& cost, const PlanningContext& context);
struct Policy;

// Plans one step as it is, with what the context leaves open settled by search; stamps the fingerprint and the budgets,
// times, simulates, checks. A plan that the checker rejects is a bug and throws.
[[nodiscard]] PlanResult make_plan(const Policy& policy, const Step& step, const CostModel& cost,
                                   const PlanningContext& context);
// The same without the checker, for searches that ask for many plans and keep one.
[[nodiscard]] PlanResult make_unproved_plan(const Policy& policy, const Step& step, const CostModel& cost,
                                            const PlanningContext& context);

}  // namespace tide
