// What a command plans for: a named device or a backend, and the times of its tasks.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/defaults.h"
#include "cli/options.h"
#include "train/target.h"

namespace tide {

struct CostArguments {
  std::string device, link;
  std::string profile = defaults().profile;
  // For commands that only plan.
  void add_to(CLI::App& app);
  // For commands that run steps as well: on a backend, whose link they can slow down.
  void add_running_to(CLI::App& app);

  // Of these arguments, with the one backend of the command; says in one line on stderr where its times are not
  // those that were asked for. Throws where the arguments do not go together.
  [[nodiscard]] std::unique_ptr<Target> target(const StepArguments& step) const;
  // The same for commands that run steps.
  [[nodiscard]] std::unique_ptr<Target> running_target(const StepArguments& step) const;
  // 0: as fast as it goes.
  [[nodiscard]] double link_bytes_per_second() const;
};

}  // namespace tide
