// Machines that people have, as trees of links. Figures are practical rates, as in devices.cpp.
#include "cost/topology.h"

namespace tide {
namespace {

constexpr double kGB = 1e9;

TreeLink same_both_ways(double rate, double both_share, double latency) { return {rate, rate, both_share, latency}; }

HostSlot host_of(const TreeLink& link, std::size_t switches, std::size_t per_switch, double memory) {
  const SwitchSlot each{link, std::vector<DeviceSlot>(per_switch, DeviceSlot{.link = link})};
  return {.network = {},
          .memory_bytes_per_second = memory,
          .peer_to_peer = true,
          .switches = std::vector<SwitchSlot>(switches, each)};
}

// PCIe 5 to the host as measured on an H200 (devices.cpp), one switch for each two devices. NVLink 4: 450 GB/s each way
// by the data sheet, 18 links of 25; a share of 0.8, as of other links here, is what a ring is taken to reach. Memory:
// eight channels of DDR5-4800 per socket, 307 GB/s, two sockets, of which four fifths.
Topology eight_h100() {
  const DeviceSheet& sheet = find_device("h100");
  HostSlot host =
      host_of(same_both_ways(sheet.link_alone, sheet.link_both / sheet.link_alone, 0), 4, 2, 0.8 * 2 * 307 * kGB);
  for (SwitchSlot& each : host.switches)
    for (DeviceSlot& device : each.devices) {
      device.peer_group = 0;
      device.peer_bytes_per_second = 0.8 * 450 * kGB;
      device.peer_latency_seconds = 2e-6;
    }
  return {"8xh100-nvlink", {std::move(host)}};
}

// PCIe 4 through one switch for each two devices. GeForce boards since this generation do not send to each other over
// PCIe: what goes between them goes by host memory. Memory: eight channels of DDR4-3200, 205 GB/s, of which four
// fifths.
Topology eight_rtx3090() {
  const DeviceSheet& sheet = find_device("rtx3090");
  HostSlot host =
      host_of(same_both_ways(sheet.link_alone, sheet.link_both / sheet.link_alone, 2e-6), 4, 2, 0.8 * 205 * kGB);
  host.peer_to_peer = false;
  return {"8xrtx3090-pcie", {std::move(host)}};
}

// The server of Kim et al. (multi-GPU swapping): four P100 at two switches, PCIe 3. Its memory is not given: taken as
// two sockets of four channels of DDR4-2400, of which the one that adds has 77 GB/s, and of these four fifths.
Topology four_p100() {
  const DeviceSheet& sheet = find_device("p100");
  return {"4xp100-pcie",
          {host_of(same_both_ways(sheet.link_alone, sheet.link_both / sheet.link_alone, 0), 2, 2, 60 * kGB)}};
}

// SuperNeurons, section 3.3.2: 8 GB/s to the host, 10 to a device at the same switch, 6 to one of another host.
Topology superneurons_cluster() {
  HostSlot host = host_of(same_both_ways(10 * kGB, 1, 0), 1, 2, 60 * kGB);
  host.switches.front().link = same_both_ways(8 * kGB, 1, 0);
  host.network = same_both_ways(6 * kGB, 1, 0);
  return {"superneurons", {host, host}};
}

}  // namespace

std::span<const Topology> named_topologies() {
  static const std::vector<Topology> all{eight_h100(), eight_rtx3090(), four_p100(), superneurons_cluster()};
  return all;
}

}  // namespace tide
