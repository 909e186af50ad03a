// The subcommands, one file each. A command adds itself to the application and, when it
// was asked for, runs and returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tide {

// Exit codes of the command line.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kInfeasible = 2;
inline constexpr int kInterrupted = 130;

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command train_command(CLI::App& root);
Command eval_command(CLI::App& root);
Command predict_command(CLI::App& root);
Command plan_command(CLI::App& root);
Command compare_command(CLI::App& root);
Command fit_command(CLI::App& root);
Command reproduce_command(CLI::App& root);
Command profile_command(CLI::App& root);
Command summary_command(CLI::App& root);
Command models_command(CLI::App& root);
Command devices_command(CLI::App& root);
Command export_command(CLI::App& root);
Command doctor_command(CLI::App& root);

}  // namespace tide
