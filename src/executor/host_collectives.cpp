#include "executor/host_collectives.h"

#include <algorithm>
#include <vector>

#include "cluster/reduce.h"
#include "step/buckets.h"

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

// One task of theirs, as it is done in host memory.
struct HostTask {
  TaskKind kind = TaskKind::reduce;
  Bytes given, made;                 // a rank's
  std::vector<ByteRange> gaps = {};  // of what a scatter makes
};

class HostCollectives final : public Collectives {
 public:
  HostCollectives(Communicator& communicator, Backend& backend, const HostCollectiveOptions& options)
      : communicator_(communicator), backend_(backend), options_(options), staging_(backend) {}

  [[nodiscard]] int rank() const override { return communicator_.rank(); }

  [[nodiscard]] Kernel prepare(const Step& step, TaskId id) override {
    const HostTask task = task_of(step, id);
    scratch_.resize(std::max(scratch_.size(), scratch_bytes(task)));
    if (!backend_.host_addressable()) {
      staging_.reserve(task.given + task.made);
      return [this, task](const Launch& launch) {
        std::byte* const given = staging_.reserve(task.given + task.made);
        std::byte* const made = made_behind(task, given);
        backend_.copy(given, launch.operands[0], task.given);
        perform(task, given, made);
        backend_.copy(launch.operands[1], made, task.made);
      };
    }
    // What is summed is changed on the way, which a scatter's operand must not be.
    if (task.kind == TaskKind::scatter) copy_.resize(std::max(copy_.size(), task.given.size()));
    return [this, task](const Launch& launch) {
      std::byte* const made = launch.operands[1];
      std::byte* const given = task.kind == TaskKind::gather   ? launch.operands[0]
                               : task.kind == TaskKind::reduce ? made
                                                               : copy_.data();
      if (given != launch.operands[0]) std::copy_n(launch.operands[0], task.given.size(), given);
      perform(task, given, made);
    };
  }

  // A process has one thread for what recorded steps have the host do: ranks that share it would wait for each other.
  [[nodiscard]] bool records() const override { return !communicator_.in_one_process(); }
  void record(StepQueue& queue, std::size_t op, const Step& step, TaskId id, const Launch& launch) override {
    const HostTask task = task_of(step, id);
    std::byte* const given = staging_.reserve(task.given + task.made);
    std::byte* const made = made_behind(task, given);
    queue.copy(Lane::reduce, op, given, launch.operands[0], task.given);
    queue.call(Lane::reduce, op, [this, task, given, made] { perform(task, given, made); });
    queue.copy(Lane::reduce, op, launch.operands[1], made, task.made);
  }

 private:
  [[nodiscard]] HostTask task_of(const Step& step, TaskId id) const {
    const auto operands = step.operands_of(id);
    HostTask task{step.task(id).kind, bytes_of(step, operands.front()), bytes_of(step, operands.back())};
    if (task.kind == TaskKind::scatter) task.gaps = gaps_of(step, id, communicator_.rank());
    return task;
  }

  [[nodiscard]] std::size_t scratch_bytes(const HostTask& task) const {
    if (task.kind == TaskKind::gather) return 0;
    if (options_.wire != DataType::bf16) return task.given.size();
    return std::max(task.given.size(), bf16_scratch_bytes(task.given.size() / sizeof(float), communicator_.size()));
  }

  // Where it is made, in memory for both; sums are made in place.
  [[nodiscard]] static std::byte* made_behind(const HostTask& task, std::byte* given) {
    return task.kind == TaskKind::reduce ? given : given + task.given.size();
  }

  void perform(const HostTask& task, std::byte* given, std::byte* made) {
    const auto rank = static_cast<std::size_t>(communicator_.rank());
    switch (task.kind) {
      case TaskKind::gather:
        std::copy_n(given, task.given.size(), made + task.given.size() * rank);
        return quick_all_gather(communicator_, {made, task.made.size()});
      case TaskKind::scatter:
        if (options_.tree || options_.wire == DataType::bf16)
          sum(given, task.given);
        else
          quick_reduce_scatter(communicator_, floats_of(given, task.given), floats_of(scratch_.data(), task.given));
        std::copy_n(given + task.made.size() * rank, task.made.size(), made);
        for (const ByteRange& gap : task.gaps) std::fill(made + gap.begin.size(), made + gap.end.size(), std::byte{});
        return;
      default: return sum(given, task.given);
    }
  }

  [[nodiscard]] static std::span<float> floats_of(std::byte* values, Bytes bytes) {
    return {reinterpret_cast<float*>(values), bytes.size() / sizeof(float)};
  }

  void sum(std::byte* values, Bytes bytes) {
    const std::span<float> floats = floats_of(values, bytes), scratch = floats_of(scratch_.data(), bytes);
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
  std::vector<std::byte> scratch_, copy_;
};

}  // namespace

std::unique_ptr<Collectives> make_host_collectives(Communicator& communicator, Backend& backend,
                                                   const HostCollectiveOptions& options) {
  return std::make_unique<HostCollectives>(communicator, backend, options);
}

}  // namespace tide
