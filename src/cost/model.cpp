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

double RooflineModel::task_seconds(const Step& step, TaskId task, std::size_t /*algorithm*/) const {
  const Work work = work_of(step, task);
  return std::max(work.flops / device_.flops_per_second, work.bytes / device_.memory_bytes_per_second) +
         device_.launch_seconds;
}

double Device::bytes_per_second(Medium medium) const {
  switch (medium) {
    case Medium::link: return link_bytes_per_second;
    case Medium::disk: return disk_bytes_per_second;
  }
  return 0;
}

double RooflineModel::copy_seconds(Bytes bytes, Tier from, Tier to) const {
  const std::optional<Route> route = find_route(from, to);
  if (!route) throw Error("nothing goes from {} memory to {} memory", tier_name(from), tier_name(to));
  return static_cast<double>(bytes.count()) / device_.bytes_per_second(row_of(*route).medium) + device_.launch_seconds;
}

}  // namespace tide
