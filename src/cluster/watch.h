// Ranks that watch each other, so that a job in which one fails ends on all of them, soon and with one line that says
// which. Each rank has a thread that talks to rank 0 (watch_link.h), outside of the libraries the ranks compute with:
// those wait for a dead peer for ever, or end without a word.
//
//   dead       its connection is closed and it has not said goodbye
//   stopped    nothing is heard of it for a while, or its network is gone
//   hanging    it lives, but without progress, and is not the one that waits (blame.h)
//
// Rank 0 judges; it prints the line and tells the others. They judge rank 0, and where it is gone the lowest rank that
// is left on each machine prints. The end is _exit(): nobody waits for a library that hangs. A rank that fails by
// itself stays until rank 0 has printed, three seconds at most: launchers end all ranks when they see one end.
//
// SIGTERM, which launchers send to all ranks when one has died, is taken as long as a Watch lives: it looks for half a
// second whether a rank has failed, and hands the signal on where none has.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cluster/communicator.h"

namespace tide {

struct WatchFailure {
  int rank = 0;         // whose
  std::string line;     // "tide: rank 3 on host b is dead during 'conv3 backward' of step 17; all ranks end"
  bool speaks = false;  // this rank is the one that prints it
  int exit_code = 1;    // of the process
};

struct WatchOptions {
  // 0: any number.
  double silence = 5;  // seconds without a word of a rank that make it count as stopped
  double hang = 10;    // seconds without progress that are too many, unless five times the predicted time is more
  // Called by the watch's thread of the rank that speaks, once, before any rank ends because of it. Default: prints it.
  std::function<void(const std::string& line)> on_line;
  // Called by the watch's thread, once; then the watch is over. Default: _exit().
  std::function<void(const WatchFailure&)> on_failure;
  // Called by the watch's thread when this process has been asked to stop. Default: what SIGTERM does.
  std::function<void()> on_stop;
  bool takes_stop_signal = true;
};

class Watch {
 public:
  // By all ranks; talks over the communicator only in here.
  explicit Watch(Communicator& communicator, WatchOptions options = {});
  // Without finish() before, this rank has failed: the others end.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // What can be going on, by this watch's numbers. The same name gives the same operation.
  enum class Operation : std::uint32_t { preparing = 0 };  // before the first one begins
  [[nodiscard]] Operation name(const std::string& text);

  // These cost a few nanoseconds. By one thread at a time.
  //
  // An operation of this rank alone, or one of all ranks, which all begin in the same order. It is over when the next
  // one begins.
  void begin(Operation operation, double predicted_seconds);
  void begin_collective(Operation operation, double predicted_seconds);
  // Back to the newest of these, which is not over.
  void continue_collective(Operation operation, double predicted_seconds);
  // Between operations: that may take as long as it likes. Words about this rank still name the last one.
  void idle();
  // Within an operation: it gets on.
  void progress() { changes_.fetch_add(1, std::memory_order_relaxed); }
  void set_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }
  // What to do about a failure, at the end of its line: "resume with --resume FILE".
  void set_advice(const std::string& advice);

  // An orderly end, by all ranks: whoever leaves afterwards has not failed. Rank 0 waits for the others here.
  void finish();

  // This rank cannot go on, for a reason of its own or for one that all of them have found. One rank says so, the
  // others end without a word; all end with this code. Does not return, unless on_failure does.
  void fail(const std::string& reason, int exit_code = 1);

  // For tests: as if this rank were dead, or stopped until it is set to none.
  enum class Pretence { none, dead, stopped };
  void pretend(Pretence pretence) { pretence_ = pretence; }

 private:
  class Thread;
  friend class Thread;

  void begin(Operation operation, float predicted_seconds, bool is_collective);

  std::mutex mutex_;  // names and advice
  std::map<std::string, Operation> operations_;
  std::deque<std::string> names_{"preparing"};
  std::string advice_;

  // What the calling thread says and the watch's thread reads. Each for itself: an operation that is paired with its
  // predecessor's prediction for once does not matter.
  std::atomic<std::uint64_t> changes_ = 0;
  std::atomic<Operation> operation_ = Operation::preparing;
  std::atomic<float> predicted_;
  std::atomic<bool> is_collective_ = false;
  std::atomic<std::int64_t> collectives_ = 0, step_ = -1;
  std::atomic<Pretence> pretence_ = Pretence::none;
  std::unique_ptr<Thread> thread_;
};

}  // namespace tide
