#include "cluster/launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace tide {
namespace {

// Signals that this process waits for, instead of what they do to it, as long as this lives.
class AwaitedSignals {
 public:
  AwaitedSignals() {
    sigemptyset(&awaited_);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&awaited_, signal);
    std::signal(SIGCHLD, SIG_DFL);  // where it is ignored, nobody learns how a child ended
    sigprocmask(SIG_BLOCK, &awaited_, &before_);
  }
  ~AwaitedSignals() { release(); }
  AwaitedSignals(const AwaitedSignals&) = delete;
  AwaitedSignals& operator=(const AwaitedSignals&) = delete;

  [[nodiscard]] int next() const {
    int signal = 0;
    sigwait(&awaited_, &signal);
    return signal;
  }
  void release() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t awaited_{}, before_{};
};

// In the child: a session of its own, so that Ctrl-C does not reach the launcher by itself; it reads no terminal there.
// What keeps it from starting goes into the pipe.
[[noreturn]] void start(char* const* words, pid_t parent, const AwaitedSignals& signals, int report) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  signals.release();
  if (isatty(STDIN_FILENO) == 1)
    if (const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC); nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (getppid() == parent) ::execv(words[0], words);
  const int reason = errno;
  [[maybe_unused]] const auto written = write(report, &reason, sizeof(reason));
  _exit(1);
}

}  // namespace

int run_launcher(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0) throw Error("no pipe can be made: {}", std::strerror(errno));
  const AwaitedSignals signals;
  const pid_t parent = getpid();
  const pid_t launcher = fork();
  if (launcher == 0) start(words.data(), parent, signals, report[1]);
  int reason = launcher < 0 ? errno : 0;
  close(report[1]);
  const bool has_failed = launcher < 0 || read(report[0], &reason, sizeof(reason)) == sizeof(reason);
  close(report[0]);
  int asked = 0, status = 0;
  while (launcher > 0 && waitpid(launcher, &status, WNOHANG) == 0)
    if (signals.next() != SIGCHLD) kill(launcher, ++asked == 1 ? SIGUSR1 : SIGTERM);
  if (has_failed) throw Error("cannot start {}: {}", command.front(), std::strerror(reason));
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  // Asked twice, it was ended; and ranks that do not listen yet end by the signal.
  const bool is_ended = asked > 1 || (asked == 1 && code == 128 + SIGUSR1);
  return is_ended && code != 0 ? kLauncherStopped : code;
}

}  // namespace tide
