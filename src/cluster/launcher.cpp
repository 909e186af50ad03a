#include "cluster/launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"

namespace tide {
namespace {

// Signals that this process waits for, instead of what they do to it, as long as this lives.
class AwaitedSignals {
 public:
  AwaitedSignals() {
    sigemptyset(&awaited_);
    for (const int signal : kSignals) sigaddset(&awaited_, signal);
    sigprocmask(SIG_BLOCK, &awaited_, &before_);
    // Where SIGCHLD is ignored, nobody learns how a child ended.
    for (std::size_t i = 0; i < kSignals.size(); ++i) handlers_[i] = std::signal(kSignals[i], SIG_DFL);
  }
  ~AwaitedSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], handlers_[i]);
    release();
  }
  AwaitedSignals(const AwaitedSignals&) = delete;
  AwaitedSignals& operator=(const AwaitedSignals&) = delete;

  [[nodiscard]] int next() const {
    int signal = 0;
    sigwait(&awaited_, &signal);
    return signal;
  }
  void release() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGCHLD};

  sigset_t awaited_{}, before_{};
  std::array<void (*)(int), kSignals.size()> handlers_{};
};

// The parent of a process; 0 where it is gone.
pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_ends = text.rfind(')');  // "17 (a name) S 4 ..."
  if (name_ends == std::string::npos || name_ends + 4 > text.size()) return 0;
  pid_t parent = 0;
  std::from_chars(text.data() + name_ends + 4, text.data() + text.size(), parent);
  return parent;
}

// Those processes below a launcher that run a program.
std::vector<pid_t> ranks_below(pid_t launcher, const std::string& program) {
  std::map<pid_t, pid_t> parents;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    pid_t process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ec == std::errc())
      parents[process] = parent_of(process);
  }
  std::vector<pid_t> ranks;
  for (const auto& [process, parent] : parents) {
    pid_t above = parent;
    // As often as there are processes at most: parents are read one after the other, while they come and go.
    for (std::size_t i = 0; i < parents.size() && above != launcher && above > 1; ++i) {
      const auto next = parents.find(above);
      above = next == parents.end() ? 0 : next->second;
    }
    if (above != launcher) continue;
    std::error_code gone;
    if (std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/exe", gone) == program)
      ranks.push_back(process);
  }
  return ranks;
}

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

int run_launcher(const std::vector<std::string>& command, const std::string& program) {
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
  bool is_asked = false, is_ended = false;
  int status = 0;
  while (launcher > 0 && waitpid(launcher, &status, WNOHANG) == 0) {
    if (signals.next() == SIGCHLD) continue;
    const std::vector<pid_t> ranks = is_asked ? std::vector<pid_t>() : ranks_below(launcher, program);
    is_asked = true;
    is_ended = is_ended || ranks.empty();
    for (const pid_t process : is_ended ? std::vector{launcher} : ranks) kill(process, SIGTERM);
  }
  if (has_failed) throw Error("cannot start {}: {}", command.front(), std::strerror(reason));
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  // Ranks that do not listen yet end by the signal.
  const bool is_stopped = is_ended || (is_asked && code == 128 + SIGTERM);
  return is_stopped && code != 0 ? kLauncherStopped : code;
}

}  // namespace tide
