#include "backend/cuda/task_room.h"

#include <algorithm>
#include <map>

namespace tide::cuda {

Bytes operand_bytes(const Step& step, TaskId task) {
  const std::span<const Operand> operands = step.operands_of(task);
  using Seen = std::pair<StorageId, ViewId>;
  const auto seen = [&](std::size_t position) {
    return Seen(step.tensor(operands[position].tensor).storage, operands[position].view);
  };
  std::map<Seen, Bytes> counted;
  for (std::size_t i = 0; i < operands.size(); ++i) counted[seen(i)] = bytes_of(step, operands[i]);
  for (const InPlacePair& pair : step.in_place_of(step.task(task))) {
    const Seen source = seen(static_cast<std::size_t>(pair.source)),
               target = seen(static_cast<std::size_t>(pair.target));
    if (source.first != target.first) counted.erase(target);
  }
  Bytes sum;
  for (const auto& [place, bytes] : counted) sum += bytes.aligned();
  return sum;
}

Bytes largest_task(const Step& step) {
  // Sums of parts, and what follows them, have other sizes on other numbers of ranks, which must choose alike.
  const auto counts = [&](const Task& task) {
    if (step.options.ranks.parts == 0) return true;
    return is_of_layer(task.kind) && std::ranges::none_of(step.operands_of(task), [](const Operand& operand) {
             return operand.role == Role::moments;
           });
  };
  Bytes largest;
  for (std::size_t t = 0; t < step.tasks.size(); ++t)
    if (counts(step.tasks[t])) largest = std::max(largest, operand_bytes(step, TaskId(t)));
  return largest;
}

}  // namespace tide::cuda
