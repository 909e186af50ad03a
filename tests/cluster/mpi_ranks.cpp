// A rank of a job that mpirun starts: mpi_ranks WHAT. Ends with 0 where all is well, with 1 and a line where it is not.
//   calls       every call
//   pieces      every call, in many pieces
//   large       megabytes
//   interrupt   a job that is given up while ranks wait
//   alone       launched as one of several, but not connected: has to be refused
//   loans       ranks on a machine each, which lend each other memory over messages
//   launch RANKS WHAT
//               starts so many of itself, which do that
//   watched FAULT RANK SECONDS HANG
//               steps of computing and summing under a watch, in which that rank has that fault after so many seconds:
//               kill, stop, loop (a computation without an end), error, term, none
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>

#include "base/stopwatch.h"
#include "cluster/calls.h"
#include "cluster/forwarding.h"
#include "cluster/launch.h"
#include "cluster/loans.h"
#include "cluster/reduce.h"
#include "cluster/watch.h"

namespace tide {
namespace {

void check_reductions(Communicator& communicator) {
  constexpr std::size_t kCount = 1003;
  std::vector<float> expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) expected[i] = test::sum_of(communicator.size(), i);
  std::vector<float> values = test::values_of(communicator.rank(), kCount), scratch(kCount);
  tree_all_reduce(communicator, values, scratch);
  test::expect(values == expected, "tree_all_reduce", communicator);
  values =
      test::values_of(communicator.rank(), kCount);  // small whole numbers, which bf16 holds, as it does their sums
  for (float& value : values) value = static_cast<float>(static_cast<int>(value) % 50);
  std::vector<float> sums = values;
  communicator.all_reduce(std::span(sums));
  std::vector<std::byte> bytes(bf16_scratch_bytes(kCount, communicator.size()));
  all_reduce_bf16(communicator, values, bytes);
  test::expect(values == sums, "all_reduce_bf16", communicator);
}

void check_large(Communicator& communicator) {
  constexpr std::size_t kCount = 5'000'003;
  test::check_all_reduce<float>(communicator, kCount);
  test::check_all_reduce<double>(communicator, kCount);
  test::check_same_bits(communicator, kCount);
  test::check_reduce_scatter(communicator, kCount);
  test::check_all_gather(communicator, kCount);
  test::check_broadcast(communicator, kCount);
  test::check_exchange(communicator, kCount);
}

// As if every rank had a machine of its own.
class RenamedHosts final : public ForwardingCommunicator {
 public:
  explicit RenamedHosts(Communicator& real) : ForwardingCommunicator(real) {
    for (int rank = 0; rank < real.size(); ++rank) hosts_.push_back(std::to_string(rank));
  }
  [[nodiscard]] const std::string& host(int rank) const override { return hosts_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::string> hosts_;
};

// Between machines nothing can be shared: the bytes go there and come back.
void check_loans_apart(Communicator& communicator) {
  for (int rank = 0; rank < communicator.size(); ++rank)
    test::expect(rank == communicator.rank() || communicator.host(rank) != communicator.host(communicator.rank()),
                 "a machine for each rank", communicator);
  test::expect(communicator.size() > 1, "several ranks", communicator);
  test::check_loans(communicator, 5'000'003);
  const std::array<Loan, 1> loan{Loan{.lender = 1, .borrower = 0, .bytes = 100}};
  for (const std::unique_ptr<Borrower>& borrower : make_loans(communicator, loan).borrowed)
    test::expect(!borrower->is_shared(), "memory of another machine is not shared", communicator);
  fmt::print("rank {} on {} has borrowed\n", communicator.rank(), communicator.host(communicator.rank()));
}

double as_number(const std::string& text) { return std::stod(text); }

// By its own hand, while it goes on with its steps; a loop is for the thread that makes them.
void fail_by_signal(const std::string& fault) {
  const timespec now = [] {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return time;
  }();
  fmt::print("fault at {}.{:03}\n", now.tv_sec, now.tv_nsec / 1'000'000);
  std::fflush(stdout);
  if (fault == "kill") kill(getpid(), SIGKILL);
  if (fault == "stop") kill(getpid(), SIGSTOP);
  if (fault == "term") kill(getpid(), SIGTERM);
}

int run_watched(const std::vector<std::string>& words) {
  const std::string& fault = words[1];
  const int rank = std::stoi(words[2]);
  const double seconds = as_number(words[3]);
  std::unique_ptr<Communicator> communicator = join_ranks();
  WatchOptions options;
  options.hang = as_number(words[4]);
  Watch watch(*communicator, options);
  watch.set_advice("resume with --resume here");
  const Watch::Operation compute = watch.name("conv1 forward"), sum = watch.name("sum of gradients");
  const bool is_faulty = communicator->rank() == rank;
  std::atomic<bool> loops = false;
  std::thread saboteur([&] {
    if (!is_faulty) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    fail_by_signal(fault);
    if (fault == "loop" || fault == "error") loops = true;
  });
  std::vector<float> values(10'000);
  const double length = fault == "none" ? seconds : 60;
  for (int step = 0; step < static_cast<int>(length / 0.005); ++step) {
    watch.set_step(step);
    watch.begin(compute, 0.005);
    const Stopwatch computing;
    while (computing.seconds() < 0.002 || (loops && fault == "loop")) values[0] += 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (loops && fault == "error") {
      saboteur.join();
      throw Error("there is no file");
    }
    watch.begin_collective(sum, 0.001);
    communicator->all_reduce(std::span(values));
  }
  saboteur.join();
  watch.finish();
  leave_ranks(std::move(communicator));
  return 0;
}

int launch(const std::vector<std::string>& words) {
  std::string program = "mpi_ranks", what = words[2];
  std::vector<std::string> command =
      launch_command(std::stoi(words[1]), std::vector<char*>{program.data(), what.data()});
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  return 1;
}

int run_rank(const std::vector<std::string>& words) {
  const std::string& what = words.front();
  if (what == "launch" && words.size() == 3) return launch(words);
  if (what == "watched" && words.size() == 5) return run_watched(words);
  if (what == "calls") {
    std::unique_ptr<Communicator> communicator = join_ranks();
    test::check_calls(*communicator);
    check_reductions(*communicator);
    if (communicator->size() > 1) {
      test::check_loans(*communicator, 1'000'003);  // shared
      RenamedHosts apart(*communicator);
      test::check_loans(apart, 1'000'003);  // served
    }
    if (threads_for(*communicator) < 1) return 1;
    leave_ranks(std::move(communicator));
  } else if (what == "pieces") {
    std::unique_ptr<Communicator> communicator = join_ranks(1000);
    test::check_calls(*communicator);
    leave_ranks(std::move(communicator));
  } else if (what == "large") {
    std::unique_ptr<Communicator> communicator = join_ranks();
    check_large(*communicator);
    leave_ranks(std::move(communicator));
  } else if (what == "loans") {
    std::unique_ptr<Communicator> communicator = join_ranks();
    check_loans_apart(*communicator);
    leave_ranks(std::move(communicator));
  } else if (what == "interrupt") {
    const std::unique_ptr<Communicator> communicator = join_ranks();
    const std::unique_ptr<Communicator> second = communicator->duplicate();
    if (communicator->size() > 1) test::check_interrupt(*communicator);
    fmt::print("rank {} was interrupted\n", communicator->rank());
    std::fflush(stdout);
    // A job that was given up is not left in order: mpirun ends all ranks when the first one ends.
    std::this_thread::sleep_for(std::chrono::seconds(4));
    _exit(0);
  } else if (what == "alone") {
    try {
      (void)join_ranks();
    } catch (const Error& error) {
      fmt::print("refused: {}\n", error.what());
      return 0;
    }
    return 1;
  } else {
    throw Error("what is '{}'?", what);
  }
  return 0;
}

}  // namespace
}  // namespace tide

int main(int count, char** arguments) {
  try {
    if (count < 2) throw tide::Error("usage: mpi_ranks WHAT");
    return tide::run_rank({arguments + 1, arguments + count});
  } catch (const tide::Error& error) {
    fmt::print(stderr, "mpi_ranks: {}\n", error.what());
    return 1;
  }
}
