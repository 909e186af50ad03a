#include "cost/model.h"

#include <algorithm>

#include "cost/work.h"

namespace tide {

Device generic_cpu() {
  return {.name = "generic-cpu",
          .flops_per_second = 150e9,
          .memory_bytes_per_second = 15e9,
          .launch_seconds = 5e-6,
          .link_bytes_per_second = 10e9,
          .disk_bytes_per_second = 1e9};
}

double collective_seconds(const Device& device, const Step& step, TaskId id) {
  const Task& task = step.task(id);
  const auto ranks = static_cast<double>(step.options.ranks.count);
  const double passes = task.kind == TaskKind::reduce ? 2 : 1;
  // Of a scatter and of a gather one operand is what all ranks have together.
  const auto operands = step.operands_of(task);
  const auto bytes =
      static_cast<double>(std::max(bytes_of(step, operands.front()), bytes_of(step, operands.back())).count());
  const double rate =
      device.reduce_bytes_per_second > 0 ? device.reduce_bytes_per_second : device.link_bytes_per_second;
  return passes * (ranks - 1) / ranks * bytes / rate + device.launch_seconds;
}

double RooflineModel::task_seconds(const Step& step, TaskId task, std::size_t /*algorithm*/) const {
  if (is_collective(step.task(task).kind)) return collective_seconds(device_, step, task);
  const Work work = work_of(step, task);
  return std::max(work.flops / device_.flops_per_second, work.bytes / device_.memory_bytes_per_second) +
         device_.launch_seconds;
}

double Device::bytes_per_second(Medium medium) const {
  switch (medium) {
    case Medium::link: return link_bytes_per_second;
    case Medium::disk: return disk_bytes_per_second;
    case Medium::network: return network_bytes_per_second;
    case Medium::peer: return peer_bytes_per_second > 0 ? peer_bytes_per_second : link_bytes_per_second;
  }
  return 0;
}

double RooflineModel::copy_seconds(Bytes bytes, Tier from, Tier to) const {
  const std::optional<Route> route = find_route(from, to);
  if (!route) throw Error("nothing goes from {} memory to {} memory", tier_name(from), tier_name(to));
  return static_cast<double>(bytes.count()) / device_.bytes_per_second(row_of(*route).medium) + device_.launch_seconds;
}

}  // namespace tide
