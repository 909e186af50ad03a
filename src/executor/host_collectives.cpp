#include "executor/host_collectives.h"

#include <algorithm>
#include <vector>

#include "cluster/reduce.h"

namespace tide {
namespace {

// Host memory that a device can copy to and from. What was handed out stays where it is.
class Pinned {
 public:
  explicit Pinned(Backend& backend) : backend_(backend) {}
  ~Pinned() {
    for (const auto& [memory, bytes] : blocks_) backend_.release_host(memory, bytes);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  std::byte* reserve(Bytes bytes) {
    if (blocks_.empty() || blocks_.back().second < bytes) blocks_.emplace_back(backend_.allocate_host(bytes), bytes);
    return blocks_.back().first;
  }

 private:
  Backend& backend_;
  std::vector<std::pair<std::byte*, Bytes>> blocks_;  // the largest last
};

class HostCollectives final : public Collectives {
 public:
  HostCollectives(Communicator& communicator, Backend& backend, const HostCollectiveOptions& options)
      : communicator_(communicator), backend_(backend), options_(options), staging_(backend) {}

  [[nodiscard]] Kernel prepare(const Step& step, TaskId id) override {
    const Task& task = step.task(id);
    const Bytes bytes = bytes_of(step, step.operands_of(task).front());
    if (task.kind == TaskKind::gather) return prepare_gather(bytes);
    if (task.kind != TaskKind::reduce) throw Error("{} is not possible here", task_name(step, id));
    scratch_.resize(std::max(scratch_.size(), bytes.size()));
    if (options_.wire == DataType::bf16)
      scratch_.resize(
          std::max(scratch_.size(), bf16_scratch_bytes(bytes.size() / sizeof(float), communicator_.size())));
    if (backend_.host_addressable())
      return [this, bytes](const Launch& launch) {
        if (launch.operands[1] != launch.operands[0]) std::copy_n(launch.operands[0], bytes.size(), launch.operands[1]);
        sum(launch.operands[1], bytes);
      };
    staging_.reserve(bytes);
    return [this, bytes](const Launch& launch) {
      std::byte* const staged = staging_.reserve(bytes);
      backend_.copy(staged, launch.operands[0], bytes);
      sum(staged, bytes);
      backend_.copy(launch.operands[1], staged, bytes);
    };
  }

  // A process has one thread for what recorded steps have the host do: ranks that share it would wait for each other.
  [[nodiscard]] bool records() const override { return !communicator_.in_one_process(); }
  void record(StepQueue& queue, std::size_t op, const Step& step, TaskId id, const Launch& launch) override {
    const auto operands = step.operands_of(id);
    const Bytes own = bytes_of(step, operands.front()), all = bytes_of(step, operands.back());
    const bool gathers = step.task(id).kind == TaskKind::gather;
    std::byte* const staged = staging_.reserve(gathers ? own + all : own);
    std::byte* const result = gathers ? staged + own.size() : staged;
    queue.copy(Lane::reduce, op, staged, launch.operands[0], own);
    queue.call(Lane::reduce, op, [this, staged, result, own, all, gathers] {
      if (gathers)
        gather(staged, result, own, all);
      else
        sum(staged, own);
    });
    queue.copy(Lane::reduce, op, launch.operands[1], result, all);
  }

 private:
  void gather(const std::byte* from, std::byte* to, Bytes own, Bytes all) {
    std::copy_n(from, own.size(), to + own.size() * static_cast<std::size_t>(communicator_.rank()));
    communicator_.all_gather({to, all.size()});
  }

  // Of what a rank brings, `own` bytes.
  Kernel prepare_gather(Bytes own) {
    const Bytes all = own * communicator_.size();
    if (backend_.host_addressable())
      return [this, own, all](const Launch& launch) { gather(launch.operands[0], launch.operands[1], own, all); };
    staging_.reserve(own + all);
    return [this, own, all](const Launch& launch) {
      std::byte* const staged = staging_.reserve(own + all);
      backend_.copy(staged, launch.operands[0], own);
      gather(staged, staged + own.size(), own, all);
      backend_.copy(launch.operands[1], staged + own.size(), all);
    };
  }

  void sum(std::byte* values, Bytes bytes) {
    const std::span<float> floats(reinterpret_cast<float*>(values), bytes.size() / sizeof(float));
    const std::span<float> scratch(reinterpret_cast<float*>(scratch_.data()), floats.size());
    if (options_.tree)
      tree_all_reduce(communicator_, floats, scratch);
    else if (options_.wire == DataType::bf16)
      all_reduce_bf16(communicator_, floats, scratch_);
    else
      quick_all_reduce(communicator_, floats, scratch);
  }

  Communicator& communicator_;
  Backend& backend_;
  HostCollectiveOptions options_;
  Pinned staging_;
  std::vector<std::byte> scratch_;
};

}  // namespace

std::unique_ptr<Collectives> make_host_collectives(Communicator& communicator, Backend& backend,
                                                   const HostCollectiveOptions& options) {
  return std::make_unique<HostCollectives>(communicator, backend, options);
}

}  // namespace tide
