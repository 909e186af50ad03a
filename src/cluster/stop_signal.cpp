#include "cluster/stop_signal.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace tide {
namespace {

// A signal belongs to a process: what its handler needs cannot be anybody's member.
std::atomic<int> stop_signal_pipe = -1;
struct sigaction stop_signal_before;

extern "C" void take_stop_signal(int /*signal*/) {
  const int before = errno;
  const char byte = 1;
  if (const int pipe = stop_signal_pipe; pipe >= 0) [[maybe_unused]]
    const auto written = write(pipe, &byte, 1);
  errno = before;
}

}  // namespace

StopSignal::StopSignal() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw Error("no pipe can be made: {}", std::strerror(errno));
  int none = -1;
  if (!stop_signal_pipe.compare_exchange_strong(none, ends[1])) {
    close(ends[0]);
    close(ends[1]);
    return;
  }
  read_ = ends[0];
  write_ = ends[1];
  struct sigaction action {};
  action.sa_handler = take_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &stop_signal_before);
}

StopSignal::~StopSignal() {
  if (read_ < 0) return;
  sigaction(SIGTERM, &stop_signal_before, nullptr);
  stop_signal_pipe = -1;
  close(read_);
  close(write_);
}

bool StopSignal::take() {
  std::array<char, 16> bytes{};
  bool came = false;
  while (read_ >= 0 && read(read_, bytes.data(), bytes.size()) > 0) came = true;
  return came;
}

void end_by_stop_signal() {
  std::signal(SIGTERM, SIG_DFL);
  kill(getpid(), SIGTERM);
}

}  // namespace tide
