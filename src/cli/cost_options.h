// What a plan is timed by: a named device, a profile, or the default model of a server.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cli/options.h"
#include "cost/model.h"

namespace tide {

struct CostArguments {
  std::string device, profile, link;
  void add_to(CLI::App& app);

  // Throws where the arguments do not go together.
  [[nodiscard]] std::shared_ptr<const CostModel> model() const;
  // The step of these arguments. With --device its algorithms are that device's; without,
  // the backend's.
  [[nodiscard]] Step build(const StepArguments& step, const NetworkPtr& network, bool inference,
                           const StepChoice& choice) const;
  // The budget, where "--memory device" is all that --device has.
  [[nodiscard]] BudgetArguments resolve(BudgetArguments budget) const;
  // How the times came about, for people: "modelled (k40c)".
  [[nodiscard]] std::string source(const CostModel& model) const;
};

// Something to add where a profile could not answer for all tasks; empty where it could.
[[nodiscard]] std::string missing_text(const CostModel& model);

}  // namespace tide
