#include "planner/search/fusing.h"

#include <algorithm>
#include <bit>

namespace tide {

void StepChoice::apply_to(StepOptions& options) const {
  options.fuse_limit = fuse_limit;
  options.part = part;
  if (early_updates) options.ranks.late_updates = false;
  if (samples == 0) return;
  (part == Part::whole ? options.sub_batch : options.batch) = samples;
}

std::vector<Bytes> fuse_limits(const std::optional<Bytes>& memory, DataType activations) {
  if (activations != DataType::f32) return {Bytes()};
  const Bytes no_addition(1);
  if (!memory) return {Bytes(), no_addition};
  // Round, so that budgets which are not far from each other have the same.
  const auto part_of_memory = [&](std::int64_t part) {
    const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(memory->count() / part, 1));
    return Bytes(static_cast<std::int64_t>(std::bit_floor(count)));
  };
  return {Bytes(), part_of_memory(2), part_of_memory(4), no_addition};
}

Bytes FusedSteps::known_limit(Bytes limit) {
  const std::lock_guard lock(mutex_);
  const auto [it, added] = known_.try_emplace(limit, limit);
  if (!added) return it->second;
  auto step = std::make_shared<const Step>(build_({limit}));
  // Other additions are fused only where there are more or fewer tasks.
  for (const auto& [other, known] : steps_)
    if (known->tasks.size() == step->tasks.size()) return it->second = other;
  steps_.emplace(limit, std::move(step));
  return limit;
}

}  // namespace tide
