#include "planner/joint/segments.h"

#include <algorithm>

namespace tide {

Segments::Segments(const StepFacts& facts) : tensors_(facts.step().tensors.size()) {
  const Step& step = facts.step();
  const auto is_data = [&](TensorId tensor) {
    const TensorClass kind = step.tensor(tensor).tensor_class;
    return kind == TensorClass::activation || kind == TensorClass::input;
  };
  const auto last_forward = [&](TensorId tensor) {
    const auto uses = facts.uses(tensor);
    const auto turn = std::lower_bound(uses.begin(), uses.end(), facts.first_backward());
    return turn == uses.begin() ? -1 : *std::prev(turn);
  };
  // How many tensors wait for a later forward task: behind a cut it is one.
  std::vector<std::int32_t> over(static_cast<std::size_t>(facts.first_backward()) + 1, 0);
  std::int32_t waiting = 0;
  for (std::int32_t t = 0; t < facts.first_backward(); ++t) {
    TensorId made;
    for (const Operand& operand : step.operands_of(TaskId(static_cast<std::size_t>(t)))) {
      if (operand.access != Access::write) continue;
      if (facts.droppable(operand.tensor) && facts.last_use(operand.tensor) >= facts.first_backward())
        total_ += step.storage(step.tensor(operand.tensor).storage).bytes.aligned().count();
      if (!is_data(operand.tensor) || last_forward(operand.tensor) <= t) continue;
      ++waiting;
      ++over[static_cast<std::size_t>(last_forward(operand.tensor))];
      made = operand.tensor;
    }
    waiting -= over[static_cast<std::size_t>(t)];
    if (waiting == 1 && made.valid() && facts.last_use(made) >= facts.first_backward())
      cuts_.push_back({made, step.storage(step.tensor(made).storage).bytes.aligned().count(), total_});
  }
}

std::vector<bool> Segments::heads(std::int64_t bytes) const {
  std::vector<bool> result(tensors_, false);
  std::int64_t begin = 0;
  for (std::size_t c = 0; c < cuts_.size(); ++c) {
    const std::int64_t next = c + 1 < cuts_.size() ? cuts_[c + 1].before : total_;
    if (next - begin <= bytes) continue;
    result[cuts_[c].tensor.index()] = true;
    begin = cuts_[c].before;
  }
  return result;
}

std::int64_t Segments::balanced() const {
  std::int64_t best = total_, least = INT64_MAX;
  for (std::int64_t bytes = total_; bytes > 0; bytes = bytes / 4 * 3) {
    std::int64_t kept = 0, begin = 0, largest = 0, count = 0;
    for (std::size_t c = 0; c < cuts_.size(); ++c) {
      const std::int64_t next = c + 1 < cuts_.size() ? cuts_[c + 1].before : total_;
      if (next - begin <= bytes) continue;
      kept += cuts_[c].bytes;
      largest = std::max(largest, cuts_[c].before - begin);
      begin = cuts_[c].before;
      ++count;
    }
    largest = std::max(largest, total_ - begin);
    if (kept + largest < least) {
      least = kept + largest;
      best = bytes;
    }
    if (count == static_cast<std::int64_t>(cuts_.size())) break;
  }
  return best;
}

}  // namespace tide
