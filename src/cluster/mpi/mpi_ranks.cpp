// MPI's C interface. All calls are begun and then tested until they are done: so that a rank can stop waiting where the
// job is given up, and so that ranks which wait leave the cores to those which work.
#include "cluster/mpi_ranks.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/stopwatch.h"

namespace tide {
namespace {

void check_mpi(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  throw Error("MPI: {} failed: {}", call, text.data());
}

// What all communicators of a process share.
struct MpiJob {
  std::atomic<bool> is_over = false;
  bool is_own = false;  // MPI was begun here
  double spin_seconds = 0;
  std::size_t largest = 0;
};

template <typename Value>
MPI_Datatype type_of() {
  if constexpr (std::is_same_v<Value, float>)
    return MPI_FLOAT;
  else if constexpr (std::is_same_v<Value, double>)
    return MPI_DOUBLE;
  else
    return MPI_BYTE;
}

int as_count(std::size_t count) {
  assert(count <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(count);
}

class MpiRank final : public Communicator {
 public:
  MpiRank(MPI_Comm communicator, std::shared_ptr<MpiJob> job) : communicator_(communicator), job_(std::move(job)) {
    check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
  }
  // A duplicate is not freed: that would be a call of all ranks, in a destructor.

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] const std::string& host(int rank) const override { return hosts_[static_cast<std::size_t>(rank)]; }
  void set_hosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  [[nodiscard]] const MpiJob& job() const { return *job_; }

  void all_reduce(std::span<float> values) override { sum_all(values); }
  void all_reduce(std::span<double> values) override { sum_all(values); }
  void reduce_scatter(std::span<float> values) override;
  void all_gather(std::span<std::byte> values) override;

  void broadcast(std::span<std::byte> values, int root) override {
    in_pieces(values, [&](std::span<std::byte> piece) {
      await("MPI_Ibcast", [&](MPI_Request* request) {
        return MPI_Ibcast(piece.data(), as_count(piece.size()), MPI_BYTE, root, communicator_, request);
      });
    });
  }

  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) override {
    if (job_->is_over) throw Error("the job has been given up");
    for (std::size_t first = 0; first < std::max(send.size(), receive.size()); first += job_->largest) {
      const auto piece_of = [&](auto all) {
        return all.subspan(std::min(first, all.size()),
                           std::min(job_->largest, all.size() - std::min(first, all.size())));
      };
      const std::span<const std::byte> out = piece_of(send);
      const std::span<std::byte> in = piece_of(receive);
      std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      if (!in.empty())
        check_mpi(MPI_Irecv(in.data(), as_count(in.size()), MPI_BYTE, peer, 0, communicator_, requests.data()),
                  "MPI_Irecv");
      if (!out.empty())
        check_mpi(MPI_Isend(out.data(), as_count(out.size()), MPI_BYTE, peer, 0, communicator_, &requests[1]),
                  "MPI_Isend");
      wait(requests, "MPI_Isend and MPI_Irecv");
    }
  }

  void barrier() override {
    await("MPI_Ibarrier", [&](MPI_Request* request) { return MPI_Ibarrier(communicator_, request); });
  }

  std::vector<std::string> gather(const std::string& text) override;

  std::unique_ptr<Communicator> duplicate() override {
    MPI_Comm made = MPI_COMM_NULL;
    await("MPI_Comm_idup", [&](MPI_Request* request) { return MPI_Comm_idup(communicator_, &made, request); });
    auto second = std::make_unique<MpiRank>(made, job_);
    second->set_hosts(hosts_);
    return second;
  }

  void interrupt() noexcept override { job_->is_over = true; }

 private:
  // Where the job is given up MPI may still use the buffers: the process is expected to end.
  void wait(std::span<MPI_Request> requests, const char* call) const {
    const Stopwatch waited;
    std::chrono::microseconds pause(20);
    for (;;) {
      int done = 0;
      check_mpi(MPI_Testall(as_count(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), call);
      if (done) return;
      if (job_->is_over) throw Error("the job has been given up");
      if (waited.seconds() < job_->spin_seconds) {
        sched_yield();
      } else {
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::microseconds(200));
      }
    }
  }

  template <typename Begin>
  void await(const char* call, const Begin& begin) const {
    if (job_->is_over) throw Error("the job has been given up");
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(begin(&request), call);
    wait(std::span(&request, 1), call);  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker): it tests until all is done
  }

  template <typename Value, typename Work>
  void in_pieces(std::span<Value> values, const Work& work) const {
    const std::size_t piece = std::max<std::size_t>(job_->largest / sizeof(Value), 1);
    for (std::size_t first = 0; first < values.size(); first += piece)
      work(values.subspan(first, std::min(piece, values.size() - first)));
  }

  template <typename Value>
  void sum_all(std::span<Value> values) {
    in_pieces(values, [&](std::span<Value> piece) {
      await("MPI_Iallreduce", [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, piece.data(), as_count(piece.size()), type_of<Value>(), MPI_SUM,
                              communicator_, request);
      });
    });
  }

  MPI_Comm communicator_;
  std::shared_ptr<MpiJob> job_;
  std::vector<std::string> hosts_;
  int rank_ = 0, size_ = 1;
};

void MpiRank::reduce_scatter(std::span<float> values) {
  const auto ranks = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
  assert(values.size() % ranks == 0);
  const std::size_t part = values.size() / ranks;
  if (part == 0) return;
  if (values.size_bytes() <= job_->largest) {
    await("MPI_Ireduce_scatter_block", [&](MPI_Request* request) {
      return MPI_Ireduce_scatter_block(MPI_IN_PLACE, values.data(), as_count(part), MPI_FLOAT, MPI_SUM, communicator_,
                                       request);
    });
    std::memmove(&values[own * part], values.data(), part * sizeof(float));  // MPI puts it first
    return;
  }
  for (std::size_t root = 0; root < ranks; ++root)
    in_pieces(values.subspan(root * part, part), [&](std::span<float> piece) {
      await("MPI_Ireduce", [&](MPI_Request* request) {
        return MPI_Ireduce(root == own ? MPI_IN_PLACE : piece.data(), root == own ? piece.data() : nullptr,
                           as_count(piece.size()), MPI_FLOAT, MPI_SUM, static_cast<int>(root), communicator_, request);
      });
    });
}

void MpiRank::all_gather(std::span<std::byte> values) {
  const auto ranks = static_cast<std::size_t>(size_);
  assert(values.size() % ranks == 0);
  const std::size_t part = values.size() / ranks;
  if (part == 0) return;
  if (values.size() <= job_->largest) {
    await("MPI_Iallgather", [&](MPI_Request* request) {
      return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values.data(), as_count(part), MPI_BYTE, communicator_,
                            request);
    });
    return;
  }
  for (std::size_t root = 0; root < ranks; ++root) broadcast(values.subspan(root * part, part), static_cast<int>(root));
}

std::vector<std::string> MpiRank::gather(const std::string& text) {
  const auto ranks = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
  std::vector<std::uint64_t> lengths(ranks);
  lengths[own] = text.size();
  all_gather(std::as_writable_bytes(std::span(lengths)));
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<char> padded(longest * ranks);
  std::copy(text.begin(), text.end(), padded.begin() + static_cast<std::ptrdiff_t>(own * longest));
  all_gather(std::as_writable_bytes(std::span(padded)));
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) all.emplace_back(padded.data() + rank * longest, lengths[rank]);
  return all;
}

std::string own_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// Whoever begins MPI ends it; a program that uses this library may have begun it itself.
bool begin_mpi() {
  int begun = 0, level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Initialized(&begun), "MPI_Initialized");
  if (begun)
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  else
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
  if (level != MPI_THREAD_MULTIPLE)
    throw Error(
        "MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE), which training needs: use an MPI "
        "that was built with them");
  return !begun;
}

}  // namespace

std::unique_ptr<Communicator> join_mpi_ranks(std::size_t largest) {
  auto job = std::make_shared<MpiJob>();
  job->is_own = begin_mpi();
  job->largest = largest;
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  // Not the program's own: messages of two users of one communicator would be mistaken for each other.
  MPI_Comm own = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &own), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  auto communicator = std::make_unique<MpiRank>(own, job);
  communicator->set_hosts(communicator->gather(own_host()));
  // Whoever has a core of its own may keep it busy for a while, which saves the time to wake up.
  const bool is_crowded = static_cast<unsigned>(local_rank(*communicator).count) > std::thread::hardware_concurrency();
  job->spin_seconds = is_crowded ? 20e-6 : 500e-6;
  return communicator;
}

void leave_mpi_ranks(Communicator& communicator) {
  const auto* const rank = dynamic_cast<const MpiRank*>(&communicator);
  if (!rank) return;
  communicator.barrier();
  if (rank->job().is_own) check_mpi(MPI_Finalize(), "MPI_Finalize");
}

bool launches_by_open_mpi() {
#ifdef OMPI_MAJOR_VERSION
  return true;
#else
  return false;
#endif
}

}  // namespace tide
