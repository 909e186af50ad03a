#include <algorithm>
#include <set>

#include "backend/cuda/recipe.h"

namespace tide::cuda {

Bytes operand_bytes(const Step& step, TaskId task) {
  const std::span<const Operand> operands = step.operands_of(task);
  const auto storage = [&](std::int16_t position) {
    return step.tensor(operands[static_cast<std::size_t>(position)].tensor).storage;
  };
  std::set<StorageId> counted;
  for (std::size_t i = 0; i < operands.size(); ++i) counted.insert(storage(static_cast<std::int16_t>(i)));
  for (const InPlacePair& pair : step.in_place_of(step.task(task)))
    if (storage(pair.source) != storage(pair.target)) counted.erase(storage(pair.target));
  Bytes sum;
  for (const StorageId id : counted) sum += step.storage(id).bytes.aligned();
  return sum;
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
