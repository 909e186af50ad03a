#include "cluster/launcher.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "support/error_of.h"

namespace tide {
namespace {

// The shell is the launcher, and this process is its parent.
int run(const std::string& script) {
  return run_launcher({"/bin/sh", "-c", script}, std::filesystem::canonical("/bin/sh").string());
}
// A launcher of one rank, another shell; it ends as that one does.
int run_rank(const std::string& script) {
  return run("sh -c \"" + script + "\" $PPID & rank=$!; wait $rank; exit $?");  // $0 is this process
}

const std::string kWait = "; while :; do sleep 0.01; done";

TEST(Launcher, EndsAsItsCommandDoes) {
  EXPECT_EQ(run("exit 0"), 0);
  EXPECT_EQ(run("exit 7"), 7);
  EXPECT_EQ(run("kill -KILL $$"), 128 + SIGKILL);
  EXPECT_EQ(run_rank("exit 3"), 3);
  EXPECT_EQ(test::error_of([] { (void)run_launcher({"/nowhere/mpirun"}, ""); }),
            "cannot start /nowhere/mpirun: No such file or directory");
}

TEST(Launcher, HasTheRanksStop) {
  for (const std::string signal : {"INT", "TERM"}) {
    const std::string ask = "; kill -" + signal + " \\$0" + kWait;
    EXPECT_EQ(run_rank("trap 'exit 42' TERM" + ask), 42);
    EXPECT_EQ(run_rank("trap 'exit 0' TERM" + ask), 0);
    EXPECT_EQ(run_rank(":" + ask), kLauncherStopped);  // it does not listen
  }
}

TEST(Launcher, IsEndedByASecondRequest) {
  const std::string twice = "trap : TERM; kill -INT \\$0; sleep 0.2; kill -INT \\$0; sleep 0.2; exit 5";
  EXPECT_EQ(run_rank(twice), kLauncherStopped);
}

TEST(Launcher, WithoutRanksIsEnded) {
  const std::string other = std::filesystem::canonical("/bin/cat").string();
  const auto run_other = [&](const std::string& script) { return run_launcher({"/bin/sh", "-c", script}, other); };
  EXPECT_EQ(run_other("kill -INT $PPID" + kWait), kLauncherStopped);
  EXPECT_EQ(run_other("trap 'exit 1' TERM; kill -INT $PPID" + kWait), kLauncherStopped);
  EXPECT_EQ(run_other("trap 'exit 0' TERM; kill -INT $PPID" + kWait), 0);
}

// As Ctrl-C of a terminal does, which signals all of its foreground group.
TEST(Launcher, HearsNothingOfTheTerminalItself) {
  EXPECT_EQ(run("[ $(cut -d ' ' -f 6 /proc/$$/stat) = $$ ]"), 0);  // leads its session
}

TEST(Launcher, LeavesSignalsAsTheyWere) {
  const auto mask = [] {
    sigset_t set;
    sigprocmask(SIG_BLOCK, nullptr, &set);
    return sigismember(&set, SIGINT) + sigismember(&set, SIGTERM) + sigismember(&set, SIGCHLD);
  };
  const int before = mask();
  const auto handler = std::signal(SIGINT, SIG_IGN);
  EXPECT_EQ(run("exit 3"), 3);
  EXPECT_EQ(mask(), before);
  EXPECT_EQ(std::signal(SIGINT, handler), SIG_IGN);
}

}  // namespace
}  // namespace tide
