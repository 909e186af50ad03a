#include <algorithm>
#include <map>

#include "backend/cuda/recipe.h"

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

const Variant& fixed_choice(const Recipe& recipe, Bytes operands, Bytes room) {
  // So much is no matter even in the largest task.
  constexpr std::int64_t kShareOfOperands = 16;
  const Bytes most = std::max(room, operands + Bytes(operands.count() / kShareOfOperands));
  const auto fits = [&](const Variant& variant) {
    return !variant.slow && operands + variant.workspace.aligned() <= most;
  };
  if (const auto found = std::find_if(recipe.begin(), recipe.end(), fits); found != recipe.end()) return *found;
  // None: then a little more than the least, where that is faster.
  const auto less = [](const Variant& a, const Variant& b) {
    return std::pair(a.slow, a.workspace) < std::pair(b.slow, b.workspace);
  };
  const Variant& least = *std::min_element(recipe.begin(), recipe.end(), less);
  const Bytes little_more = least.workspace + Bytes(least.workspace.count() / 4);
  return *std::find_if(recipe.begin(), recipe.end(),
                       [&](const Variant& v) { return v.slow == least.slow && v.workspace <= little_more; });
}

}  // namespace tide::cuda
