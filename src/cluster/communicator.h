// One of several ranks that train together, and what it can do with the others. Ranks are processes that a launcher
// started (launch.h) or threads of one process (threads.h). What is built from these calls alone is in reduce.h.
//
// Every call is made by all ranks (exchange(): by both) in the same order, from one thread at a time; whoever wants to
// talk from another thread at the same time does so over a duplicate. A call returns when its own part is done. Where
// the job has been given up (interrupt()), calls throw an Error instead of waiting.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tide {

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  // Whether all of them are threads of this process.
  [[nodiscard]] virtual bool in_one_process() const { return false; }
  // The name of the machine that a rank is on.
  [[nodiscard]] virtual const std::string& host(int rank) const = 0;

  // Sums over all ranks, in place, in whatever order the library likes; every rank gets the same bits.
  virtual void all_reduce(std::span<float> values) = 0;
  virtual void all_reduce(std::span<double> values) = 0;
  // `values` is `size()` equal parts. Afterwards part `rank()` holds the sum over all ranks, the others anything.
  virtual void reduce_scatter(std::span<float> values) = 0;
  // `values` is `size()` equal parts, of which each rank brings its own; afterwards all have all.
  virtual void all_gather(std::span<std::byte> values) = 0;
  virtual void broadcast(std::span<std::byte> values, int root) = 0;
  // Sends to one rank and receives from it; either may be nothing. REQUIRES: it receives as much as is sent to it.
  virtual void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) = 0;
  virtual void barrier() = 0;
  // One text of each rank, by rank, of any length.
  [[nodiscard]] virtual std::vector<std::string> gather(const std::string& text) = 0;

  // The same ranks, for another thread.
  [[nodiscard]] virtual std::unique_ptr<Communicator> duplicate() = 0;
  // Has calls that wait, on this rank and on those of its process, throw. From any thread; the job is over.
  virtual void interrupt() noexcept = 0;
};

// Ranks on the same machine as this one: how many, and which of them it is.
struct LocalRank {
  int index = 0, count = 1;
};
[[nodiscard]] LocalRank local_rank(const Communicator& communicator);

}  // namespace tide
