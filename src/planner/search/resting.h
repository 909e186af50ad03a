// Parameters and optimizer state that rest in host memory: a step finds them there, at the
// bottom of that tier in table order, and leaves them there. The device has them only while
// tasks use them, so that depth is bounded by host memory.
//
//   host    |=== w ==============================|== w' ==   one stay, the whole step
//   device      |copy in, forward|     |copy in, backward, update, copy out|
#pragma once

#include <vector>

#include "planner/policy.h"

namespace tide {

// What rests.
struct RestingChoice {
  std::vector<bool> rest_in_host;  // see PlanningContext
  Bytes bytes;
};

// What PlannerOptions::parameters leaves open: with `automatic`, what makes the simulated step fastest, nothing among
// it. A function of the step and the budget.
class RestingChoices {
 public:
  // Throws an Error where the policy keeps parameters on the device and the options want them elsewhere.
  RestingChoices(const Policy& policy, const Step& step, const CostModel& cost, const PlanningContext& context);

  // Whether there is nothing to choose, and what it is then.
  [[nodiscard]] bool settled() const { return list_.empty(); }
  [[nodiscard]] const std::optional<std::vector<bool>>& only() const { return only_; }
  // In the order in which they are to be tried: the least first.
  [[nodiscard]] const std::vector<RestingChoice>& list() const { return list_; }
  // The one that takes the least device memory.
  [[nodiscard]] const std::vector<bool>& all() const { return all_; }

 private:
  void list_automatic(const Step& step, const CostModel& cost, const PlanningContext& context);

  std::optional<std::vector<bool>> only_;
  std::vector<RestingChoice> list_;
  std::vector<bool> all_;
};

// What a plan came to, for other steps of the job.
[[nodiscard]] std::vector<bool> rest_in_host(const Plan& plan);

}  // namespace tide
