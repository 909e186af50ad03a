// Ahead of need: in the backward pass, what the coming tasks read is fetched while there is
// room for it beside everything that these tasks will make themselves.
#include <algorithm>

#include "planner/runtime.h"

namespace tide {

void VirtualRuntime::prefetch() {
  // Far enough for a few copies to be on their way, near enough to stay cheap.
  constexpr std::int32_t kWindow = 48;
  std::int64_t free = pool_.free().count();
  std::int64_t grown = 0, most = 0;  // bytes that the coming tasks make beyond what they free
  double until = 0;                  // compute time from now to the task looked at
  std::vector<StorageId> met;        // made or fetched by the tasks looked at
  const auto meet = [&](StorageId id) {
    if (std::find(met.begin(), met.end(), id) != met.end()) return false;
    met.push_back(id);
    return true;
  };
  const std::int32_t end = std::min(done_ + 1 + kWindow, facts_.tasks());
  for (std::int32_t position = done_ + 1; position < end; ++position) {
    const TaskId task(static_cast<std::size_t>(position));
    const auto operands = step_.operands_of(task);
    std::vector<StorageId> wanted;
    for (const Operand& operand : operands) {
      const StorageId id = storage(operand.tensor);
      if (persistent(id) || cache_.contains(key(id)) || !meet(id)) continue;
      grown += size(id).count();
      if (operand.access != Access::write && record_.holds(operand.tensor, Tier::host)) wanted.push_back(id);
      // What has to be run again starts from something that may be in host memory.
      TensorId source = operand.tensor;
      while (operand.access == Access::read && source.valid() && !available(source)) {
        const TaskId again = facts_.replay(source);
        TensorId next;
        if (again.valid())
          for (const Operand& read : step_.operands_of(again))
            if (read.access == Access::read && read.role == Role::x) next = read.tensor;
        source = next;
        if (!source.valid() || persistent(storage(source))) break;
        if (cache_.contains(key(storage(source))) || !meet(storage(source))) break;
        grown += size(storage(source)).count();
        if (record_.holds(source, Tier::host)) wanted.push_back(storage(source));
      }
    }
    most = std::max(most, grown);
    if (most > free) return;
    for (const StorageId id : wanted) {
      const double seconds = cost_.copy_seconds(step_.storage(id).bytes, Tier::host, Tier::device);
      // Not before it has to start to be there in time, twice over.
      if (std::max(in_ - compute_, 0.0) + 2 * seconds < until) return;
      if (!choose_hole(size(id), false)) return;
      if (!allocate(id)) return;
      copy_in(id);
      update_rank(id);
      grown -= size(id).count();
      free -= size(id).count();
      most = std::max(grown, most - size(id).count());
    }
    for (const Operand& operand : operands) {
      const StorageId id = storage(operand.tensor);
      if (!persistent(id) && facts_.last_use(operand.tensor) == position) grown -= size(id).count();
    }
    until += cost_.task_seconds(step_, task, 0);
  }
}

}  // namespace tide
