#include "backend/nccl_collectives.h"

#include <nccl.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "backend/cuda/streams.h"
#include "step/buckets.h"

namespace tide {
namespace {

void check(ncclResult_t result, std::string_view what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw Error("{} failed: {}", what, ncclGetErrorString(result));
}

void check(cudaError_t result, std::string_view what) {
  if (result != cudaSuccess) throw Error("{} failed: {}", what, cudaGetErrorString(result));
}

class NcclCollectives final : public Collectives {
 public:
  NcclCollectives(Backend& backend, const NcclOptions& options)
      : stream_(cuda::stream_of(backend, Lane::reduce)), rank_(options.rank) {
    // Read when the communicator is made; what the user has set stays.
    if (options.deterministic) {
      ::setenv("NCCL_NVLS_ENABLE", "0", 0);
      ::setenv("NCCL_ALGO", "Ring", 0);
    }
    ncclUniqueId id{};
    if (options.rank == 0) check(ncclGetUniqueId(&id), "meeting by NCCL");
    if (options.ranks > 1) options.hand_out(std::as_writable_bytes(std::span(&id, 1)));
    check(ncclCommInitRank(&communicator_, options.ranks, id, options.rank),
          "meeting by NCCL (each rank needs a GPU of its own; where they share one, use --reduce cpu)");
  }
  // Not ncclCommDestroy(), which waits for the other ranks.
  ~NcclCollectives() override {
    if (communicator_ != nullptr) static_cast<void>(ncclCommAbort(communicator_));
  }
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }

  [[nodiscard]] Kernel prepare(const Step& step, TaskId task) override {
    const Kernel enqueue = enqueued(step, task);
    return [this, enqueue](const Launch& launch) {
      cuda::follow_compute(stream_);
      enqueue(launch);
      cuda::synchronize(stream_);
    };
  }

  [[nodiscard]] bool records() const override { return true; }
  void record(StepQueue& queue, std::size_t op, const Step& step, TaskId task, const Launch& launch) override {
    queue.run(Lane::reduce, op, enqueued(step, task), launch);
  }

 private:
  [[nodiscard]] Kernel enqueued(const Step& step, TaskId id) const {
    const auto operands = step.operands_of(id);
    const std::size_t read = bytes_of(step, operands[0]).size(), written = bytes_of(step, operands[1]).size();
    switch (step.task(id).kind) {
      case TaskKind::reduce: return summed(read / sizeof(float));
      case TaskKind::scatter: return scattered(written / sizeof(float), gaps_of(step, id, rank_));
      case TaskKind::gather: return gathered(read);
      default: throw Error("{} is not possible by NCCL", task_name(step, id));
    }
  }

  [[nodiscard]] Kernel summed(std::size_t floats) const {
    return [this, floats](const Launch& launch) {
      check(ncclAllReduce(launch.operands[0], launch.operands[1], floats, ncclFloat, ncclSum, communicator_, stream()),
            "a sum by NCCL");
    };
  }

  // Of a sum, the part of this rank: so many floats, 0 between parameters.
  [[nodiscard]] Kernel scattered(std::size_t floats, std::vector<ByteRange> gaps) const {
    return [this, floats, gaps = std::move(gaps)](const Launch& launch) {
      check(ncclReduceScatter(launch.operands[0], launch.operands[1], floats, ncclFloat, ncclSum, communicator_,
                              stream()),
            "a sum by NCCL");
      for (const ByteRange& gap : gaps)
        check(cudaMemsetAsync(launch.operands[1] + gap.begin.size(), 0, (gap.end - gap.begin).size(), stream()),
              "clearing what is between parameters");
    };
  }

  // So many bytes of each rank.
  [[nodiscard]] Kernel gathered(std::size_t bytes) const {
    return [this, bytes](const Launch& launch) {
      check(ncclAllGather(launch.operands[0], launch.operands[1], bytes, ncclUint8, communicator_, stream()),
            "a gathering by NCCL");
    };
  }

  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  cuda::LaneStream stream_;
  int rank_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::unique_ptr<Collectives> make_nccl_collectives(Backend& backend, const NcclOptions& options) {
  return std::make_unique<NcclCollectives>(backend, options);
}

bool has_nccl() { return true; }

}  // namespace tide
