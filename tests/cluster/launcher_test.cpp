#include "cluster/launcher.h"

#include <gtest/gtest.h>

#include <csignal>

#include "support/error_of.h"

namespace tide {
namespace {

// The shell is the launcher, and this process is its parent.
int run(const std::string& script) { return run_launcher({"/bin/sh", "-c", script}); }

const std::string kWait = "; while :; do sleep 0.01; done";

TEST(Launcher, EndsAsItsCommandDoes) {
  EXPECT_EQ(run("exit 0"), 0);
  EXPECT_EQ(run("exit 7"), 7);
  EXPECT_EQ(run("kill -KILL $$"), 128 + SIGKILL);
  EXPECT_EQ(test::error_of([] { (void)run_launcher({"/nowhere/mpirun"}); }),
            "cannot start /nowhere/mpirun: No such file or directory");
}

TEST(Launcher, HandsOnARequestToStop) {
  for (const std::string signal : {"INT", "TERM"}) {
    const std::string ask = "; kill -" + signal + " $PPID" + kWait;
    EXPECT_EQ(run("trap 'exit 42' USR1" + ask), 42);
    EXPECT_EQ(run("trap 'exit 0' USR1" + ask), 0);
    EXPECT_EQ(run(":" + ask), kLauncherStopped);  // it does not listen
  }
}

TEST(Launcher, IsEndedByASecondRequest) {
  const std::string twice = "kill -INT $PPID; sleep 0.2; kill -INT $PPID" + kWait;
  EXPECT_EQ(run("trap '' USR1; " + twice), kLauncherStopped);
  EXPECT_EQ(run("trap '' USR1; trap 'exit 1' TERM; " + twice), kLauncherStopped);
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
  EXPECT_EQ(run("exit 3"), 3);
  EXPECT_EQ(mask(), before);
}

}  // namespace
}  // namespace tide
