#include <algorithm>

#include "backend/cuda/recipe.h"

namespace tide::cuda {

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
