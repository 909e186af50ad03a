// A launcher as a child of this process, so that whoever asks this process to stop asks the ranks, and they have the
// time that they need: mpirun kills its ranks a second after it was asked itself.
#pragma once

#include <string>
#include <vector>

namespace tide {

// The exit code of a job that was asked to stop before its ranks could tell of it.
constexpr int kLauncherStopped = 130;

// Runs a launcher, by its command, to its end: its exit code, or 128 and the signal that ended it. Meanwhile the first
// SIGINT or SIGTERM of this process is SIGTERM to the ranks, which are those processes below the launcher that run
// `program`, a path without links; where there is none yet, and with further signals, it is SIGTERM to the launcher.
// Should this process be killed, the launcher gets SIGTERM. REQUIRES: this process has one thread. Throws an Error
// where the command does not start.
[[nodiscard]] int run_launcher(const std::vector<std::string>& command, const std::string& program);

}  // namespace tide
