// A task as its kernel sees it: operands by role, the layer's options, shapes with the
// batch. Shapes come from the network, not from the tensors: behind a flatten layer the
// tensor still has its old shape.
#pragma once

#include <optional>
#include <vector>

#include "step/step.h"

namespace tide {

class TaskView {
 public:
  TaskView(const Step& step, TaskId id);

  [[nodiscard]] const Step& step() const { return *step_; }
  [[nodiscard]] TaskId id() const { return id_; }
  [[nodiscard]] TaskKind kind() const { return task().kind; }
  // True for forward and replay.
  [[nodiscard]] bool is_forward() const { return kind() == TaskKind::forward || kind() == TaskKind::replay; }
  [[nodiscard]] LayerKind layer_kind() const { return step_->layer_kind(task()); }
  [[nodiscard]] LayerId layer_id() const { return task().layer; }
  [[nodiscard]] const Layer& layer() const { return step_->network->layer(task().layer); }
  template <typename Options>
  [[nodiscard]] const Options& options() const {
    return layer().as<Options>();
  }

  // Of a layer that draws random numbers: which ones.
  [[nodiscard]] std::uint32_t random_stream() const;

  // Positions of operands; the n-th of those with this role that are read or written
  // (accumulated counts as written). The first two throw where there is none.
  [[nodiscard]] std::size_t read(Role role, std::size_t nth = 0) const;
  [[nodiscard]] std::size_t written(Role role, std::size_t nth = 0) const;
  [[nodiscard]] std::optional<std::size_t> find_read(Role role, std::size_t nth = 0) const;
  [[nodiscard]] std::optional<std::size_t> find_written(Role role, std::size_t nth = 0) const;
  [[nodiscard]] std::vector<std::size_t> all_read(Role role) const;
  [[nodiscard]] std::vector<std::size_t> all_written(Role role) const;

  [[nodiscard]] const Operand& operand(std::size_t position) const { return operands_[position]; }
  [[nodiscard]] std::span<const Operand> operands() const { return operands_; }
  [[nodiscard]] const Tensor& tensor(std::size_t position) const { return step_->tensor(operands_[position].tensor); }
  // What the kernel finds at the operand's address: the tensor, or what its view shows of it.
  [[nodiscard]] const Shape& shape(std::size_t position) const { return step_->shape_of(operands_[position]); }
  [[nodiscard]] const MemoryOrder& order(std::size_t position) const { return step_->order_of(operands_[position]); }
  [[nodiscard]] bool accumulates(std::size_t position) const { return adds(*step_, operands_[position]); }

  // Of an update: how the n-th of its parameters is trained.
  struct TrainedAt {
    double rate = 1, decay = 1;  // factors (Parameter)
  };
  [[nodiscard]] TrainedAt trained_at(std::size_t nth) const;

  // Which samples of the batch it works on.
  [[nodiscard]] std::int64_t first_sample() const { return task().first_sample; }
  [[nodiscard]] std::int64_t samples() const { return samples_of(*step_, task()); }
  // Of the layer's inputs and outputs, for these samples.
  [[nodiscard]] Shape input(std::size_t index = 0) const;
  [[nodiscard]] Shape output(std::size_t index = 0) const;

 private:
  [[nodiscard]] const Task& task() const { return step_->task(id_); }
  [[nodiscard]] std::optional<std::size_t> find(Role role, bool written, std::size_t nth) const;

  const Step* step_;
  TaskId id_;
  std::span<const Operand> operands_;
};

// A narrow tensor of a concat or split.
struct ChannelPart {
  std::size_t position;           // among the task's operands
  std::int64_t offset, channels;  // within the wide tensor's
};

// The parts that have an operand; their index says which input or output they are.
[[nodiscard]] std::vector<ChannelPart> channel_parts(const TaskView& view, const std::vector<std::size_t>& positions);

}  // namespace tide
