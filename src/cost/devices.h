// The devices that plans can be made for without having one: figures from data sheets, and
// the shares of them that good kernels reach. Everything here is data.
#pragma once

#include <span>
#include <string_view>

#include "cost/model.h"

namespace tide {

struct DeviceSheet {
  std::string_view name;
  std::string_view description;
  std::int64_t memory_bytes = 0;  // 0: as much as the machine has
  // Dense peaks, operations per second; 0 where the device has no such units.
  double fp32_flops = 0, tf32_flops = 0, bf16_flops = 0;
  double memory_bytes_per_second = 0;
  // Pinned host memory: one direction alone, and each way with both busy.
  double link_alone = 0, link_both = 0;
  double launch_seconds = 0;  // from one kernel to the next
  // What a good kernel reaches of the peak it is bounded by.
  double fp32_efficiency = 0, matrix_efficiency = 0, memory_efficiency = 0;
  double winograd_share = 1;

  [[nodiscard]] Bytes memory() const { return Bytes(memory_bytes); }
  // Copies from memory that is not pinned go through a staging buffer: half the rate.
  [[nodiscard]] double pageable_link() const { return link_alone / 2; }
  // The rates that planning uses. Steps are 32-bit, so matrix units count where they take
  // TF32; the link's rate is the one with both directions busy.
  [[nodiscard]] Device rates() const;
};

[[nodiscard]] std::span<const DeviceSheet> device_sheets();
// Throws an Error that lists the devices where the name is unknown.
[[nodiscard]] const DeviceSheet& find_device(std::string_view name);

}  // namespace tide
