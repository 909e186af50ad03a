// Planning: step + cost + budget -> Plan. Each policy is one file with one function; all
// are called through make_plan, which times them and has the checker prove the result.
// Nothing here knows a device.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cost/model.h"
#include "plan/plan.h"

namespace tide {

struct PlannerOptions {
  std::optional<Bytes> memory;       // device budget; none: unlimited
  std::optional<Bytes> host_memory;
  bool in_place = true;              // liveness and sharing: results may overwrite dead operands
};

// A plan, or why there is none: that a budget is too small is an answer, not an error.
struct PlanResult {
  std::optional<Plan> plan;
  Bytes floor;                  // the smallest budget this policy can work with
  std::string bottleneck_task;  // the task that needs it
  double plan_seconds = 0;      // without the checker
  double check_seconds = 0;
};

// What a policy function returns: the plan it would make with no budget beyond `options`,
// and the floor. It leaves `plan` empty where the budget is below the floor.
using PolicyFunction = PlanResult (*)(Step step, const CostModel& cost, const PlannerOptions& options);

struct Policy {
  std::string_view name;
  std::string_view description;
  PolicyFunction plan;
};

[[nodiscard]] std::span<const Policy> policies();
// Throws an Error that lists the policies where the name is unknown.
[[nodiscard]] const Policy& find_policy(std::string_view name);

// Runs a policy: plans, stamps the fingerprint and the budgets, times, checks. A plan that
// the checker rejects is a bug and throws.
[[nodiscard]] PlanResult make_plan(const Policy& policy, Step step, const CostModel& cost, const PlannerOptions& options);

}  // namespace tide
