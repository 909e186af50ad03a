// How several devices are connected, without having them: a tree of links, device -> switch -> host -> network, and
// direct links between devices beside it. Plain data; what runs over it is timed by plan/together.h.
//
//   network  host 0  switch 0  device 0    what the devices of one switch send up shares its link;
//                              device 1    copies from a device end in its host's memory;
//                    switch 1  device 2    direct links: between any two devices of a group
//            host 1  ...
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/devices.h"

namespace tide {

// One link of the tree. Full duplex: each way has its own bandwidth, and a share of it while the other way is busy too.
struct TreeLink {
  double up = 0, down = 0;  // bytes per second towards the root, and away from it
  double both_share = 1;
  double latency_seconds = 0;

  friend bool operator==(const TreeLink&, const TreeLink&) = default;
};

struct DeviceSlot {
  TreeLink link;  // to its switch
  // Direct links: to all others of its host with the same group, each way; -1: none.
  std::int32_t peer_group = -1;
  double peer_bytes_per_second = 0, peer_latency_seconds = 0;

  friend bool operator==(const DeviceSlot&, const DeviceSlot&) = default;
};

struct SwitchSlot {
  TreeLink link;  // to its host
  std::vector<DeviceSlot> devices;

  friend bool operator==(const SwitchSlot&, const SwitchSlot&) = default;
};

struct HostSlot {
  TreeLink network;                    // to the others; of no matter where there are none
  double memory_bytes_per_second = 0;  // of its memory: what adds gradients there is bound by it
  // Whether a switch takes bytes from one of its devices to another. Where it does not, they go by host memory.
  bool peer_to_peer = true;
  std::vector<SwitchSlot> switches;

  friend bool operator==(const HostSlot&, const HostSlot&) = default;
};

struct Topology {
  std::string name;
  std::vector<HostSlot> hosts;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// Where a device is: devices are counted through all hosts and switches in their order.
struct DevicePlace {
  std::size_t host = 0, switch_in_host = 0, device_in_switch = 0;
  std::size_t switch_in_all = 0;  // the link group: devices that share a link to their host
};
[[nodiscard]] std::vector<DevicePlace> device_places(const Topology& topology);
[[nodiscard]] inline std::size_t device_count(const Topology& topology) { return device_places(topology).size(); }
[[nodiscard]] const DeviceSlot& slot_of(const Topology& topology, const DevicePlace& place);

// The first `devices` of it. Throws an Error where it has fewer.
[[nodiscard]] Topology first_devices(const Topology& topology, std::size_t devices);

inline constexpr std::size_t kMostDevices = 4096;
// Throws an Error where a rate, a share or a count makes no sense; `source` begins it.
void require_valid(const Topology& topology, std::string_view source);

// One host, one switch for each two devices, every link as fast as the sheet's. REQUIRES: 1 to kMostDevices.
[[nodiscard]] Topology default_topology(std::size_t devices, const DeviceSheet& sheet);

// Those that are written down, by name (topologies.cpp says where their figures come from).
[[nodiscard]] std::span<const Topology> named_topologies();
// A name of these, or a file. Throws an Error that lists the names where it is neither.
[[nodiscard]] Topology find_topology(const std::string& name_or_file);

// {"tidepool_topology": 1, "name": "two boxes", "hosts": [
//   {"count": 2, "network": LINK, "memory_bytes_per_second": 6e10, "peer_to_peer": true, "switches": [
//     {"count": 2, "link": LINK, "devices": [{"count": 2, "link": LINK}]}],
//     "peers": [{"devices": [0, 1, 2, 3], "bytes_per_second": 2e10, "latency_seconds": 0}]}]}
// with LINK {"bytes_per_second": 12e9, "both_share": 0.845, "latency_seconds": 5e-6}, or "up" and "down" for the rate.
// Devices of "peers" are counted within their host; a count of 1 can be left out.
[[nodiscard]] Topology topology_from_json(const std::string& text, const std::string& source);
[[nodiscard]] std::string topology_to_json(const Topology& topology);
[[nodiscard]] Topology read_topology(const std::filesystem::path& path);

}  // namespace tide
