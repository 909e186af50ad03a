// How to plan: the policy, what it can be told, and what it may do to the batch.
#pragma once

#include <CLI/CLI.hpp>
#include <list>
#include <string>
#include <vector>

#include "cli/defaults.h"
#include "planner/policy.h"

namespace tide {

struct PlannerArguments {
  std::string policy = defaults().policy;
  std::string parameters{parameters_name(defaults().planner.parameters)};
  std::int64_t sub_batch = samples_asked(defaults().planner.batch);
  std::string allow{numerics_name(allowed_by(defaults().planner.batch))};
  std::string batch_norm = has_exact_batch_norm(defaults().planner.batch) ? "exact" : "plain";
  void add_to(CLI::App& app, bool with_policy = true);
  // With the budgets.
  [[nodiscard]] PlannerOptions options(const PerTier<std::optional<Bytes>>& budgets) const;

 private:
  // What was given for an option that a policy declares.
  struct Given {
    const PolicyOption* option = nullptr;
    std::string value;
    std::vector<std::string> list;
    bool flag = false;
  };
  void add_policy_option(CLI::App& app, const PolicyOption& option);
  [[nodiscard]] Batch batch() const;

  std::list<Given> given_;  // CLI11 writes into them, so that they stay where they are
};

}  // namespace tide
