// How long a task or a copy takes. Planners and the simulator ask this and nothing else
// about time.
#pragma once

#include <string>

#include "base/route.h"
#include "step/step.h"

namespace tide {

class CostModel {
 public:
  virtual ~CostModel() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual double task_seconds(const Step& step, TaskId task, std::size_t algorithm) const = 0;
  [[nodiscard]] virtual double copy_seconds(Bytes bytes, Tier from, Tier to) const = 0;
};

// Of copies to host memory that another rank lends, each way: within a machine, where they go through its memory twice;
// and between machines, unless somebody knows better (10 Gbit/s).
inline constexpr double kSharedBytesPerSecond = 5e9, kNetworkBytesPerSecond = 1e9;

// A device as a few rates. A catalogue of real ones is in devices.h.
struct Device {
  std::string name;
  double flops_per_second = 0;  // that a good kernel reaches, not the data sheet's
  double memory_bytes_per_second = 0;
  double launch_seconds = 0;         // per task
  double link_bytes_per_second = 0;  // to host memory, each way
  double disk_bytes_per_second = 0;
  double network_bytes_per_second = kSharedBytesPerSecond;  // to memory that another rank lends, each way
  double peer_bytes_per_second = 0;                         // to memory of another device, each way; 0: as the link
  double reduce_bytes_per_second = 0;  // to other devices, for sums over ranks, each way; 0: as the link
  // Outside matrix units, where the device has such; 0: as flops_per_second.
  double fp32_flops_per_second = 0;
  double bf16_flops_per_second = 0;  // of steps in bf16; 0: as flops_per_second
  double winograd_share = 1;         // of the efficiency it usually has
  Bytes memory{};                    // 0: not known

  [[nodiscard]] double bytes_per_second(Medium medium) const;
};

// Of a task that all ranks do together, when no rank keeps the others waiting: in a ring, every rank sends each part of
// the tensor but its own, once to sum it up and once to hand out the sum.
[[nodiscard]] double collective_seconds(const Device& device, const Step& step, TaskId task);

// A plain server core pair: what `tide` plans for when nothing else is said.
[[nodiscard]] Device generic_cpu();

// Time is the larger of arithmetic and memory traffic, plus the launch.
class RooflineModel final : public CostModel {
 public:
  explicit RooflineModel(Device device) : device_(std::move(device)) {}
  [[nodiscard]] std::string name() const override { return device_.name; }
  [[nodiscard]] double task_seconds(const Step& step, TaskId task, std::size_t algorithm) const override;
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier from, Tier to) const override;

 private:
  Device device_;
};

}  // namespace tide
