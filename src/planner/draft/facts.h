// What planners ask about a step again and again, worked out once: who makes a tensor, who
// uses it and when, and which tensors can be dropped and run again.
//
// Positions are those of the ordered tasks.
#pragma once

#include <span>
#include <vector>

#include "planner/draft/resting_storages.h"

namespace tide {

inline constexpr std::int32_t kNever = INT32_MAX;  // later than any position

class StepFacts {
 public:
  // Layers of the kinds in `checkpoints` are never run again for the sake of memory.
  StepFacts(const Step& step, std::span<const LayerKind> checkpoints, Resting resting = {});

  // Positions of the ordered tasks that read or write a tensor, ascending.
  [[nodiscard]] std::span<const std::int32_t> uses(TensorId tensor) const {
    const std::size_t t = tensor.index();
    return {uses_.data() + first_use_[t], uses_.data() + first_use_[t + 1]};
  }
  // kNever for what outlives the step; -1 where nobody uses it.
  [[nodiscard]] std::int32_t last_use(TensorId tensor) const { return last_use_[tensor.index()]; }
  // Whether a task behind `position` uses it.
  [[nodiscard]] bool is_used_behind(TensorId tensor, std::int32_t position) const {
    const auto list = uses(tensor);
    return !list.empty() && list.back() > position;
  }
  // The first use behind `position`; kNever where there is none (or none but the next step's).
  [[nodiscard]] std::int32_t next_use(TensorId tensor, std::int32_t position) const;
  // The ordered task that first writes it; invalid where the step begins with it.
  [[nodiscard]] TaskId producer(TensorId tensor) const { return producer_[tensor.index()]; }
  // The replay that makes it again; invalid where there is none.
  [[nodiscard]] TaskId replay(TensorId tensor) const;

  // Whether it can be dropped after the forward pass and made again whenever a backward
  // task needs it, from things that are still needed then anyway: nothing is kept for its
  // sake alone.
  [[nodiscard]] bool droppable(TensorId tensor) const { return droppable_[tensor.index()]; }
  // Rules dropping out for these (by tensor).
  void keep(const std::vector<bool>& heads);
  [[nodiscard]] bool is_checkpoint(LayerKind kind) const { return checkpoint_[static_cast<std::size_t>(kind)]; }

  // Whether it is in host memory between steps.
  [[nodiscard]] bool rests(StorageId storage) const { return tide::rests(resting_, storage); }
  [[nodiscard]] const Resting& resting() const { return resting_; }

  // Where the forward pass ends: the first ordered task that is not a forward one.
  [[nodiscard]] std::int32_t first_backward() const { return first_backward_; }
  [[nodiscard]] std::int32_t tasks() const { return static_cast<std::int32_t>(step_.ordered_tasks); }
  [[nodiscard]] const Step& step() const { return step_; }

 private:
  void find_uses();
  void find_droppable();

  const Step& step_;
  Resting resting_;
  std::vector<std::uint32_t> first_use_;
  std::vector<std::int32_t> uses_, last_use_;
  std::vector<TaskId> producer_;
  std::vector<bool> droppable_;
  std::vector<bool> checkpoint_;  // by layer kind
  std::int32_t first_backward_ = 0;
};

// The paper's sets: layers whose outputs are never dropped, and those whose outputs move.
[[nodiscard]] std::span<const LayerKind> paper_checkpoints();
[[nodiscard]] std::span<const LayerKind> paper_offloads();

}  // namespace tide
