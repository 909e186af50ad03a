// Ahead of need: in the backward pass, what the coming tasks read is fetched while there is
// room for it beside everything that these tasks will make themselves.
#include <algorithm>
#include <utility>

#include "planner/runtime/runtime.h"

namespace tide {

void VirtualRuntime::prefetch() {
  // Far enough for the copies that can be on their way, near enough to stay cheap.
  const std::int32_t window = rules_.prefetch == Prefetch::at_once ? 256 : 48;
  std::int64_t free = pool_.free().count();
  std::int64_t grown = 0, most = 0;  // bytes that the coming tasks make beyond what they free
  ++prefetches_;
  const auto meet = [&](StorageId id) { return std::exchange(met_[id.index()], prefetches_) != prefetches_; };
  const std::int32_t end = std::min(done_ + 1 + window, facts_.tasks());
  std::vector<StorageId> wanted;
  for (std::int32_t position = done_ + 1; position < end; ++position) {
    const auto operands = step_.operands_of(TaskId(static_cast<std::size_t>(position)));
    wanted.clear();
    for (const Operand& operand : operands) {
      const StorageId id = storage(operand.tensor);
      if (fixed(id) || cache_.contains(key(id)) || !meet(id)) continue;
      grown += size(id).count();
      if (operand.access == Access::write) continue;
      if (record_.holds(operand.tensor, Tier::host)) wanted.push_back(id);
      // What has to be run again starts from something that may be in host memory.
      TensorId source = operand.tensor;
      while (operand.access == Access::read && !available(source)) {
        source = replay_source(source);
        if (!source.valid() || fixed(storage(source))) break;
        if (cache_.contains(key(storage(source))) || !meet(storage(source))) break;
        grown += size(storage(source)).count();
        if (record_.holds(source, Tier::host)) wanted.push_back(storage(source));
      }
    }
    most = std::max(most, grown);
    if (most > free) return;
    const double until = clock_.between(done_ + 1, position);
    for (const StorageId id : wanted) {
      // Not before it has to start to be there in time, twice over.
      if (rules_.prefetch == Prefetch::in_time &&
          std::max(clock_.free[Lane::in] - clock_.free[Lane::compute], 0.0) + 2 * fetch_seconds(id) < until)
        return;
      if (!choose_hole(size(id), true) || !allocate(id)) return;
      copy_in(id);
      update_rank(id);
      grown -= size(id).count();
      free -= size(id).count();
      most = std::max(grown, most - size(id).count());
    }
    for (const Operand& operand : operands) {
      const StorageId id = storage(operand.tensor);
      if (!fixed(id) && facts_.last_use(operand.tensor) == position) grown -= size(id).count();
    }
  }
}

// What a replay of this tensor works on; invalid where there is none.
TensorId VirtualRuntime::replay_source(TensorId tensor) const {
  const TaskId again = facts_.replay(tensor);
  if (again.valid())
    for (const Operand& operand : step_.operands_of(again))
      if (operand.access == Access::read && operand.role == Role::x) return operand.tensor;
  return {};
}

}  // namespace tide
